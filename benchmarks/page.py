"""docs/benchmarks.md from the results of all parts: what is met and what is not, plots, and a section for each part.

Sections of other modules (compaction, recovery, ...) stay where they are, behind these.
"""

import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.bench import BROKER_NAMES, MACHINE, OTTLA, Part
from benchmarks.loop_lag import LONG_PASSES, SECONDS, places
from benchmarks.measures import shown
from benchmarks.plots import ratio_plots
from benchmarks.process_figures import machine
from benchmarks.report import PAGE, Row, caveat, read_page, row_of, section_text, table_of, write_sections
from benchmarks.results import QUICK_DIRECTORY, PartResults, load
from compat_tests.kafka.jars import KAFKA_VERSION
from docs.plots import standalone

QUICK_PAGE = QUICK_DIRECTORY.parent / "benchmarks.md"
LAG_TITLE = "Loop lag"

INTRODUCTION = """\
# Benchmarks

Ottla {version} on {python} beside Apache Kafka {kafka} with its own start script's JVM settings (1 GB heap), each as
one process with a data directory of its own, on the same machine ({machine}), taken in turns in one run. In most parts
both are up, and a figure of the one is followed by the same figure of the other, while the first is stopped: what
others do on a shared machine then meets both alike. Clients are processes of their own on the same machine, so absolute
figures say as much about client and machine as about the brokers: what counts is the ratio, Ottla's figure divided by
Kafka's of the same round (↑ more is better, ↓ less is better). It is the median of the rounds, and the spread is from
the lowest to the highest. Where rounds disagree whether an aim of a part is met, on whichever side their median is, the
part is taken in two rounds more.

Settings are the defaults of both, but for `log.segment.delete.delay.ms=100`, so that the disk need not take what a
part has written, `broker.session.timeout.ms=3600000`, so that a broker that was stopped is not given up,
`socket.listen.backlog.size=4096`, which is Ottla's default (with Kafka's of 50, whoever connects when 50 are waiting
tries again a second later: a thousand connections took 8 to 16 s with either broker), and
`group.initial.rebalance.delay.ms=0`.

`limit` says what kept Ottla's figure from being better where more is better: the *client*, when one of its threads was
busy all the time, when a producer that may send several requests had less than half of one under way on average, when
the broker used less than half of a core while clients kept most of the machine busy, or when the aim would be out of
reach for a broker that costs nothing and answers at once; the *machine*, when all cores were in use; else the *broker*.
Where the client is the limit, a ratio of 1 is all that can be asked of a broker, and by chance it is a little more or
less: a median of more than 0.97 with rounds above 1 is neither met nor missed but *even*.
*raw* rows are from a load generator of our own (`benchmarks/raw_load.py`), which sends requests that were made before
over plain sockets and costs far less than a stock client.
What is free in a virtual machine may be given back to its host, and cost its next user more than all else that is done
with it: the free memory is used once when a run begins and kept from going back, so that neither broker pays for it.
CPU is user and system time of the broker's processes; `resident` is their memory right after the figure, Ottla's and
Kafka's.

Run it yourself: `make bench` (an hour and more), `make bench QUICK=1` (about two minutes, one round without
groups, idle connections, many partitions and growth, into `.cache/bench`), or a part alone, such as
`make bench ONLY=produce`.
"""

LAG_INTRODUCTION = """\
How late Ottla's event loop was for somebody who came at any moment of a part, in milliseconds: the broker measures it
when it gets SIGUSR1 (`server/loop_lag.py`), while it has its turn. p50, p99 and p99.9 are medians of the rounds, in
each of which they are the mean of the turns, which count by their length; max is the worst of all. A
process that waits for a core is late, too, so this is as much of the machine as of the broker when all cores are busy;
*blocked* is the longest in a usual round that it neither worked nor waited for a core, but slept in the midst of its
work, as when a disk keeps it waiting, or a worker thread has the interpreter.
*own* is the CPU time that the loop's thread used between two waits, and *in* the functions that were under way when
that was most. It is left empty where it was too short to be seen. *usual max* is the median of the rounds of what is
longest in each, *garbage* the longest collection by its own CPU time, in whichever thread, *long* how many passes of
more than 5 ms of own time there were in a minute.
On a virtual machine a thread is also charged for what the host does in its place: *counting by one* and *appending a
megabyte* above, which are nobody's work, have such passes, too, and tell how many and how long. What a broker does, it
does in every round: *usual max* is to be looked at.
"""


def write_page(parts: Sequence[Part], quick: bool) -> Path:
    """Write the page and its plots from what is there."""
    page = QUICK_PAGE if quick else PAGE
    plots = page.parent / "benchmarks" if not quick else page.parent / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    found = [(part, results) for part in parts if (results := load(part.name, quick)) is not None]
    rows = {part.name: rows_of(part, results) for part, results in found}
    sections = {}
    for part, results in found:
        body = body_of(part, results, rows[part.name])
        drawn = part.plots(results) if part.plots is not None else {}
        for name, (svg, caption) in drawn.items():
            body += "\n\n" + _draw(plots, name, svg, caption)
        about = f", taken on {results.when}" + (f" on {results.commit}" if results.commit else "")
        sections[part.section.title] = section_text(part.section, len(results.rounds), 0.0, body, about)
    sections[LAG_TITLE] = f"{LAG_INTRODUCTION}\n{lag_table(found)}\n"
    _, others = read_page(page)
    sections |= {title: body for title, body in others.items() if title not in sections}
    start = introduction(found) + "\n" + caveat(max((each.other_cores for _, each in found), default=0.0))
    start += summary([row for each in rows.values() for row in each])
    for name, (svg, caption) in ratio_plots([row for each in rows.values() for row in each]).items():
        start += "\n" + _draw(plots, name, svg, caption) + "\n"
    write_sections(start, sections, page)
    return page


def body_of(part: Part, results: PartResults, rows: Sequence[Row]) -> str:
    """The table of a part."""
    if part.is_of_machine:
        return machine_table(part, results)
    return table_of(rows) if part.table is None else part.table(results)


def rows_of(part: Part, results: PartResults) -> list[Row]:
    """A row for each measure that both brokers have."""
    if part.is_of_machine:
        return []
    found = [(measure, results.entries(measure.title, BROKER_NAMES)) for measure in part.measures]
    return [row_of(measure, pairs) for measure, pairs in found if pairs]


def introduction(found: Sequence[tuple[Part, PartResults]]) -> str:
    """What is compared, and how."""
    return INTRODUCTION.format(
        version=next((results.version for _, results in found), "?"),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        kafka=KAFKA_VERSION,
        machine=machine(),
    )


def summary(rows: Sequence[Row]) -> str:
    """How many aims are met, and plainly which are not."""
    judged = [row for row in rows if row.verdict.is_met is not None]
    missed = [row for row in judged if not row.verdict.is_met and not row.verdict.is_even]
    even = [row for row in judged if row.verdict.is_even]
    text = f"**{len(judged) - len(missed) - len(even)} of {len(judged)} aims are met.**"
    if missed:
        text += " Not met:\n\n" + _list(missed)
    if even:
        text += "\n\nEven with Kafka:\n\n" + _list(even)
    return text + "\n"


def _list(rows: Sequence[Row]) -> str:
    return "\n".join(f"- {_missed(row)}" for row in rows)


def _missed(row: Row) -> str:
    measure, verdict = row.measure, row.verdict
    aim = measure.aim.words(measure.unit, verdict.limit) if measure.aim else ""
    spread = f", {verdict.low:.2f} to {verdict.high:.2f}" if len(verdict.ratios) > 1 else ""
    return (
        f"{measure.title}: {shown(measure, verdict.ottla)} against {shown(measure, verdict.kafka)}, "
        f"{verdict.ratio:.2f} ×{spread} (aim {aim})"
    )


def machine_table(part: Part, results: PartResults) -> str:
    """What the machine can do: the median and the range of the rounds."""
    lines = ["| | | from–to |", "|---|---:|---:|"]
    for measure in part.measures:
        values = [entry.value for (entry,) in results.entries(measure.title, (MACHINE,))]
        if values:
            span = f"{shown(measure, min(values))} – {shown(measure, max(values))}" if len(values) > 1 else ""
            lines.append(f"| {measure.title} | {shown(measure, statistics.median(values))} | {span} |")
    return "\n".join(lines)


def lag_table(found: Sequence[tuple[Part, PartResults]]) -> str:
    """A row for each part in which the loop was looked at."""
    lines = [
        "| part | p50 | p99 | p99.9 | max | blocked | own p99.9 | usual max | own max | garbage | long | in |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for part, results in found:
        lags = results.lags(OTTLA)
        if lags:
            cells = [
                *(_figure(lags, name, statistics.median) for name in ("p50_ms", "p99_ms", "p999_ms")),
                _figure(lags, "max_ms", max),
                _figure(lags, "blocked_max_ms", statistics.median),
                _figure(lags, "work_p999_ms", statistics.median),
                _figure(lags, "work_max_ms", statistics.median),
                _figure(lags, "work_max_ms", max),
                _figure(lags, "garbage_max_ms", max),
                _long_passes(lags),
                places(results.longest_work(OTTLA)),
            ]
            lines.append(
                f"| {part.section.title.lower()} |{''.join(f' {cell} |' if cell else ' |' for cell in cells)}"
            )
    return "\n".join(lines)


def _figure(
    lags: Sequence[Mapping[str, float]], name: str, of_rounds: Callable[[Sequence[float]], float]
) -> str:
    """Nothing of what an older run did not look at."""
    values = [lag[name] for lag in lags if name in lag]
    return f"{of_rounds(values):.2f} ms" if values else ""


def _long_passes(lags: Sequence[Mapping[str, float]]) -> str:
    """In a minute of all rounds together."""
    seconds = sum(lag.get(SECONDS, 0.0) for lag in lags)
    return f"{sum(lag.get(LONG_PASSES, 0.0) for lag in lags) / seconds * 60:.1f}" if seconds else ""


def _draw(directory: Path, name: str, svg: str, caption: str) -> str:
    """Write a plot; the line of the page that shows it."""
    (directory / f"{name}.svg").write_text(standalone(svg), encoding="utf-8")
    return f"![{caption}]({directory.name}/{name}.svg)"
