"""How long a record takes: to its acknowledgement, one after the other, and to a consumer at a steady pace."""

from collections.abc import Iterator
from statistics import median

from benchmarks import clients, raw_load
from benchmarks.bench import Bench, Part
from benchmarks.measures import Aim, Measure
from benchmarks.plots import Plots, latency_plot
from benchmarks.report import Section
from benchmarks.results import PartResults

AIMS = {"p50": Aim(ratio_at_most=0.8), "p99": Aim(ratio_at_most=0.5), "p99.9": Aim(ratio_at_most=0.5)}
RATES = (1_000, 20_000)
STRETCHES, STRETCH_RECORDS = 3, 12_000
SECTION = Section(
    "Latency",
    f"""\
Serial: one record of 100 bytes after the other, each waiting for its acknowledgement of acks=all, from librdkafka and
from the raw load, in {STRETCHES} stretches of {STRETCH_RECORDS:,}, by turns with the other broker, of whose figures the
median is taken. End to end: a librdkafka producer sends records of 100 bytes at an even pace with `linger.ms=0`,
and a consumer in another process notes how old each is.
{{rounds}}""",
)
SERIAL = {name: Measure(f"serial, acks=all: {name}", "ms", False, aim) for name, aim in AIMS.items()}
RAW = {name: Measure(f"raw serial, acks=all: {name}", "ms", False, aim) for name, aim in AIMS.items()}
SERIAL_CPU = Measure("serial, acks=all: broker CPU each", "µs", False)
RAW_CPU = Measure("raw serial, acks=all: broker CPU each", "µs", False)
END_TO_END = {
    rate: {
        name: Measure(f"end to end at {rate:,} msg/s: {name}", "ms", False, AIMS[name])
        for name in ("p50", "p99")
    }
    for rate in RATES
}
END_TO_END_CPU = {
    rate: Measure(f"end to end at {rate:,} msg/s: broker CPU", "% of a core", False) for rate in RATES
}


def measure_latency(bench: Bench) -> Iterator[None]:
    """Each behind a stretch without a clock."""
    bench.create_topic("serial")
    count = bench.size(STRETCH_RECORDS, 2_000)
    for measures, cpu, function in (
        (SERIAL, SERIAL_CPU, clients.serial),
        (RAW, RAW_CPU, raw_load.serial),
    ):
        bench.run(function, topic="serial", count=count // 5)
        watches = []
        for _ in range(bench.size(STRETCHES, 1)):
            watches.append(bench.run(function, topic="serial", count=count))
            yield
        for name, measure in measures.items():
            bench.note(measure, median(watch.result[name] for watch in watches), watches[-1])
        bench.note(cpu, sum(watch.broker_cpu_seconds for watch in watches) / (len(watches) * count) * 1e6)
    for rate in RATES:
        topic = f"pace-{rate}"
        bench.create_topic(topic)
        seconds = bench.size(8.0, 1.5)
        bench.run(clients.end_to_end, topic=topic, rate=rate, seconds=seconds / 2)
        watch = bench.run(clients.end_to_end, topic=topic, rate=rate, seconds=seconds)
        for name, measure in END_TO_END[rate].items():
            bench.note(measure, watch.result[name], watch)
        bench.note(END_TO_END_CPU[rate], watch.broker_cpu_seconds / seconds * 100)
        yield


def plot_latency(results: PartResults) -> Plots:
    """All of them."""
    measures = [
        *SERIAL.values(),
        *RAW.values(),
        *(each for rate in RATES for each in END_TO_END[rate].values()),
    ]
    return latency_plot("latency", results, measures)


LATENCY_PART = Part(
    "latency",
    SECTION,
    [
        *SERIAL.values(),
        SERIAL_CPU,
        *RAW.values(),
        RAW_CPU,
        *(each for rate in RATES for each in (*END_TO_END[rate].values(), END_TO_END_CPU[rate])),
    ],
    measure_latency,
    plots=plot_latency,
    seconds=40,
)
