"""What somebody else waits for while a broker has requests about very many things."""

from collections.abc import Iterator
from statistics import median

from benchmarks.bench import BROKER_NAMES, OTTLA, Bench, Part
from benchmarks.heavy_requests import OCCASIONS, beside, prepare
from benchmarks.measures import Measure, shown
from benchmarks.plots import Plots, latency_plot
from benchmarks.report import Section, cells_of, row_of
from benchmarks.results import PartResults

SECTION = Section(
    "Beside heavy requests",
    """\
A client sends one record after the other with acks=all, from the raw load, while others have requests about very many
things, to a broker with a topic of 5,000 partitions and 1,000 topics of one: the longest that it waits for an
acknowledgement. Each occasion is repeated, and the median of the repetitions is taken: a machine that stops for ten
milliseconds does so whoever has something to do. *own* is the longest pass of Ottla's event loop by its own CPU time,
and *CPU* what the whole occasion costs the brokers, with the records beside it, Ottla and Kafka, medians of the
repetitions, too; *resident* is their memory after it.
{rounds}`make bench ONLY=heavy` takes them alone.""",
)
WAITS = {title: Measure(f"beside: {title}", "ms", False) for title in OCCASIONS}
CPU = {title: Measure(f"CPU: {title}", "ms", False) for title in OCCASIONS}
OWN = {title: Measure(f"own: {title}", "ms", False) for title in OCCASIONS}


def measure_heavy(bench: Bench) -> Iterator[None]:
    """One occasion after the other."""
    prepare(bench.broker)
    bench.rest(2.0)
    for title, occasion in OCCASIONS.items():
        waits, own, cpu = [], [], []
        for number in range(1, occasion.repeats + 1):
            bench.skip_lag()
            watch = bench.run(beside, title=title, number=number)
            lag = bench.read_lag()
            waits.append(watch.result["longest_ms"])
            cpu.append(watch.broker_cpu_seconds * 1000)
            if lag.figures:
                own.append(lag.figures["work_max_ms"])
        bench.note(WAITS[title], median(waits))
        bench.note(CPU[title], median(cpu))
        if own:
            bench.note(OWN[title], median(own))
        yield


def table_of_waits(results: PartResults) -> str:
    """Both brokers beside each other, and the longest pass of Ottla's loop."""
    lines = [
        "|  | Ottla | Apache Kafka | Ottla ÷ Kafka | spread | own | CPU | resident |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for title in OCCASIONS:
        pairs = results.entries(WAITS[title].title, BROKER_NAMES)
        if pairs:
            row = row_of(WAITS[title], pairs)
            own = median(entry.value for (entry,) in results.entries(OWN[title].title, (OTTLA,)))
            used = row_of(CPU[title], results.entries(CPU[title].title, BROKER_NAMES)).verdict
            cpu = f"{used.ottla:,.0f} / {used.kafka:,.0f} ms"
            cells = cells_of(row)
            lines.append(f"| {' | '.join([title, *cells[1:5], shown(OWN[title], own), cpu, cells[8]])} |")
    return "\n".join(lines)


def plot_waits(results: PartResults) -> Plots:
    """A bar for each broker and occasion."""
    return latency_plot("heavy", results, list(WAITS.values()))


HEAVY_PART = Part(
    "heavy",
    SECTION,
    [*WAITS.values(), *CPU.values(), *OWN.values()],
    measure_heavy,
    table=table_of_waits,
    plots=plot_waits,
    shares_broker=False,
    keeps_files=True,
    in_quick=False,
    seconds=60,
)
