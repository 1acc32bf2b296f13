"""The tables of results, and docs/benchmarks.md as a page of sections, each of which can be written alone."""

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measures import Entry, Figures, Measure, Verdict, judge, shown

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"

__all__ = ["Section", "caveat", "shown", "table", "write_section"]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page, written by a module of its own. In the introduction `{rounds}` is replaced."""

    title: str
    introduction: str


GROUPS = Section(
    "Consumer groups",
    """\
Members are connections of a small client of our own, which costs far less than a stock client: 50 that join one group
at once and send a heartbeat every 100 ms, and groups of one member that send theirs one after the other. Neither broker
waits for more members (`group.initial.rebalance.delay.ms=0`, `group.consumer.assignment.interval.ms=0`).
The warm-up is short, a thousand requests of a kind, so a JIT compiler is not yet done with its work.
{rounds}`make bench ONLY=groups` takes them alone.
""",
)
TRANSACTIONS = Section(
    "Transactions",
    """\
Kafka's ProducerPerformance, and librdkafka in stretches of 0.4 s, send 1 KB records to one partition as fast as they
go through, by turns with a commit every 100 ms and without transactions; all are idempotent. When a commit is due a
client waits for what is under way, ends the transaction and begins the next one. librdkafka sends several times as
much, and to have nothing under way costs it the more the faster the broker is, with transactions or without: what is
*kept with transactions* is of a producer that waits at the same moments until all is acknowledged, and of one that
never waits it stands beside. Of 1.7 ms for a transaction of one record, 1.2 pass from the answer to EndTxn until
librdkafka asks for the next transaction's first partition, and 0.4 are Ottla's CPU. *Share of the time in which
commits are waited for* is from when all is acknowledged until the transaction is committed. Transactions of one
record are begun, written and committed one after the other by each producer.
{rounds}`make bench ONLY=transactions` takes them alone.
""",
)
COMPACTION = Section(
    "Compaction",
    """\
The same records are given to both brokers while nothing is dirty enough to be cleaned; then
`min.cleanable.dirty.ratio` is lowered, and the clock runs until `cleaner-offset-checkpoint` says that the log is clean
up to its active segment. Bytes are those of the log before. What consumers are left with is the same, or the run fails.
A topic of each kind is compacted first without a clock, for the JIT compiler. Ottla cleans in a process of
its own, whose start is part of the time and whose CPU is part of the CPU.
{rounds}Written by `python -m benchmarks.compaction`, which `make bench-log` runs (short: `make bench-log QUICK=1`).
""",
)
RECOVERY = Section(
    "Start and recovery",
    """\
Both brokers start on the same data directory, in turns: after `kill -9` with no recovery point, so that every byte is
read, and after a clean stop with very many partitions. The clock runs from the start of the process until the last
partition is served. The files are in the page cache.
{rounds}Written by `python -m benchmarks.recovery`, which `make bench-log` runs (short: `make bench-log QUICK=1`).
""",
)
SPARK = Section(
    "Spark",
    """\
Spark's own Kafka source in one Spark of two cores reads topics of four partitions, as a batch and as a stream that
ends when it has read what there is (AvailableNow), from both brokers in turns. Rows get all their columns and are
then dropped. Spark and its consumers take most of the machine, so speeds say little about a broker unless it keeps
Spark waiting. Everything is read once without a clock before, for the JIT compilers.
{rounds}Written by `make bench-spark` (short: `make bench-spark QUICK=1`).
""",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A measure with what was found, and the resident memory of both brokers beside it."""

    measure: Measure
    verdict: Verdict
    resident_mb: tuple[float, float] = (0.0, 0.0)


def row_of(measure: Measure, pairs: Sequence[tuple[Entry, ...]]) -> Row:
    """From the entries of Ottla and Kafka in each round."""
    ottla, kafka = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    verdict = judge(measure, ottla, kafka, os.cpu_count() or 1)
    resident = tuple(statistics.median(entry.resident_mb for entry in each) for each in (ottla, kafka))
    return Row(measure, verdict, (resident[0], resident[1]))


def table_of(rows: Sequence[Row]) -> str:
    """Medians, ratios with their spread, aims and what was the limit; columns without anything in them are left out."""
    titles = ["", "Ottla", "Apache Kafka", "Ottla ÷ Kafka", "spread", "aim", "", "limit", "resident"]
    cells = [cells_of(row) for row in rows]
    used = [number for number in range(len(titles)) if any(row[number] for row in cells)]
    lines = [_line([titles[number] for number in used])]
    lines.append(_line(["---" if number in (0, 6, 7) else "---:" for number in used]))
    lines += [_line([row[number] for number in used]) for row in cells]
    return "\n".join(lines)


def cells_of(row: Row) -> list[str]:
    """What stands in the columns of a row."""
    measure, verdict = row.measure, row.verdict
    arrow = "↑" if measure.more_is_better else "↓"
    met = "even" if verdict.is_even else {None: "", True: "met", False: "**not met**"}[verdict.is_met]
    ours, theirs = row.resident_mb
    return [
        measure.title,
        shown(measure, verdict.ottla),
        shown(measure, verdict.kafka),
        f"{verdict.ratio:.2f} × {arrow}",
        f"{verdict.low:.2f}–{verdict.high:.2f}" if len(verdict.ratios) > 1 else "",
        measure.aim.words(measure.unit, verdict.limit) if measure.aim else "",
        met,
        verdict.limit,
        f"{ours:,.0f} / {theirs:,.0f} MB" if ours else "",
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(results: Mapping[str, Sequence[Figures]]) -> str:
    """The table of figures that were taken without anything beside them."""
    rows = []
    for measure in results["ottla"][0]:
        both = [[Entry(figures[measure]) for figures in results[name]] for name in ("ottla", "kafka")]
        rows.append(row_of(measure, list(zip(*both, strict=True))))
    return table_of(rows)


def caveat(other_cores: float) -> str:
    """A sentence for a run on a machine that had other things to do; nothing for a quiet one."""
    if other_cores < 0.2:
        return ""
    return (
        f"**Other work kept {other_cores:.1f} cores busy during this run.** It blurs every figure of time and speed;\n"
        "those of CPU time and memory can be relied on.\n\n"
    )


def write_section(section: Section, results: Mapping[str, Sequence[Figures]], other_cores: float) -> Path:
    """Write a part of the page, where it stands or at the end; the others stay."""
    body = section_text(section, len(results["ottla"]), other_cores, table(results))
    start, sections = read_page()
    sections[section.title] = body
    write_sections(start, sections)
    return PAGE


def section_text(section: Section, count: int, other_cores: float, body: str, about: str = "") -> str:
    """A section without its title; it may be said when and on what it was taken."""
    rounds = "" if count == 1 else f"Figures are medians of {count} rounds{about}. "
    introduction = section.introduction.format(rounds=rounds).rstrip()
    return f"{introduction}\n\n{caveat(other_cores)}{body}\n"


def read_page(page: Path = PAGE) -> tuple[str, dict[str, str]]:
    """What is there before the first section, and the text of each section."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    start, *parts = ("\n" + text).split("\n## ")
    sections = {title: body.strip() + "\n" for title, _, body in (part.partition("\n") for part in parts)}
    return start.strip() + "\n", sections


def write_sections(start: str, sections: Mapping[str, str], page: Path = PAGE) -> None:
    """Write the page from its parts."""
    parts = [start, *(f"## {title}\n\n{body}" for title, body in sections.items())]
    page.write_text("\n".join(parts), encoding="utf-8")
