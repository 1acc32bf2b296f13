"""The table of results, on the screen and in docs/benchmarks.md."""

import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measures import Figures, Measure, Sizes
from benchmarks.process_figures import machine
from compat_tests.kafka.jars import KAFKA_VERSION

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"

INTRODUCTION = """\
# Benchmarks

Ottla {ottla} on {python} beside Apache Kafka {kafka} with its own start script's JVM settings (1 GB heap), each as
one process with a data directory of its own, on the same machine ({machine}), taken in turns in one run{rounds}.
The client is librdkafka through confluent-kafka and shares the machine with the broker, so absolute figures say as
much about client and machine as about the brokers: what counts is the last column.

{caveat}Run it yourself: `make bench` (about five minutes) or `make bench QUICK=1` (about one and a half).
This page was written by {command}.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page behind the first table, written by a module of its own. In the introduction `{rounds}` is
    replaced."""

    title: str
    introduction: str


GROUPS = Section(
    "Consumer groups",
    """\
Members are connections of a small client of our own, which costs far less than a stock client: 50 that join one group
at once and send a heartbeat every 100 ms, and groups of one member that send theirs one after the other. Neither broker
waits for more members (`group.initial.rebalance.delay.ms=0`, `group.consumer.assignment.interval.ms=0`).
The warm-up is short, a thousand requests of a kind, so a JIT compiler is not yet done with its work.
{rounds}Written by `python -m benchmarks.groups`, which `make bench` runs, too.
""",
)
TRANSACTIONS = Section(
    "Transactions",
    """\
librdkafka sends 1 KB records to one partition as fast as they go through, in stretches of one second by turns with and
without transactions; both are idempotent. When a commit is due it waits for what is under way, ends the transaction and
begins the next one, so a part of the price is the pause of a client that has nothing under way. Transactions of one
record are begun, written and committed one after the other by each producer.
{rounds}Written by `python -m benchmarks.transactions`, which `make bench` runs last.
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


def shown(measure: Measure, value: float) -> str:
    """A figure with its unit, in as many digits as it deserves."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {measure.unit}"


def table(results: Mapping[str, Sequence[Figures]]) -> str:
    """Medians of both brokers and how many times better Ottla is (below 1: worse)."""
    lines = ["| | Ottla | Apache Kafka | Ottla is better by |", "|---|---:|---:|---:|"]
    for measure in results["ottla"][0]:
        ottla, kafka = (
            statistics.median(figures[measure] for figures in results[name]) for name in ("ottla", "kafka")
        )
        ratio = ottla / kafka if measure.more_is_better else kafka / max(ottla, 1e-9)
        lines.append(
            f"| {measure.title} | {shown(measure, ottla)} | {shown(measure, kafka)} | {ratio:.2f} × |"
        )
    return "\n".join(lines)


def caveat(other_cores: float) -> str:
    """A sentence for a run on a machine that had other things to do; nothing for a quiet one."""
    if other_cores < 0.2:
        return ""
    return (
        f"**Other work kept {other_cores:.1f} cores busy during this run.** It blurs every figure of time and speed;\n"
        "those of CPU time and memory can be relied on.\n\n"
    )


def write_page(
    results: Mapping[str, Sequence[Figures]], version: str, sizes: Sizes, quick: bool, other_cores: float
) -> Path:
    """Write the page with introduction and table."""
    text = INTRODUCTION.format(
        ottla=version,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        kafka=KAFKA_VERSION,
        machine=machine(),
        caveat=caveat(other_cores),
        rounds="" if sizes.rounds == 1 else f", {sizes.rounds} times; figures are medians",
        command="`make bench QUICK=1`" if quick else "`make bench`",
    )
    _, sections = _page()
    _write(f"{text}\n{table(results)}\n", sections)
    return PAGE


def write_section(section: Section, results: Mapping[str, Sequence[Figures]], other_cores: float) -> Path:
    """Write a part of the page, where it stands or at the end; the others stay."""
    count = len(results["ottla"])
    rounds = "" if count == 1 else f"Figures are medians of {count} rounds. "
    start, sections = _page()
    introduction = section.introduction.format(rounds=rounds)
    sections[section.title] = f"{introduction}\n{caveat(other_cores)}{table(results)}\n"
    _write(start, sections)
    return PAGE


def _page() -> tuple[str, dict[str, str]]:
    """What is there before the first section, and the text of each section."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    start, *parts = ("\n" + text).split("\n## ")
    sections = {title: body.strip() + "\n" for title, _, body in (part.partition("\n") for part in parts)}
    return start.strip() + "\n", sections


def _write(start: str, sections: Mapping[str, str]) -> None:
    parts = [start, *(f"## {title}\n\n{body}" for title, body in sections.items())]
    PAGE.write_text("\n".join(parts), encoding="utf-8")
