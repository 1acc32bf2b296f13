"""Kafka's own measuring tools as the client."""

from collections.abc import Iterator

from benchmarks import java_tools
from benchmarks.bench import Bench, Part
from benchmarks.measures import Aim, Measure
from benchmarks.process_figures import Stopwatch
from benchmarks.report import Section

SECTION = Section(
    "Kafka's own tools",
    """\
ProducerPerformance, ConsumerPerformance and EndToEndLatency of Apache Kafka, with their defaults. Speeds are
what they report, after a fifth as many records to warm up; their JVM, whose compiler is at work for most of that,
shares the machine with the broker.
{rounds}""",
)
PRODUCE = Measure("ProducerPerformance 1 KB, acks=all", "MB/s", True, Aim(ratio_at_least=1.3))
PRODUCE_CPU = Measure("ProducerPerformance 1 KB: broker CPU", "s/GB", False, Aim(ratio_at_most=0.5))
SMALL = Measure("ProducerPerformance 100 B, acks=1", "MB/s", True, Aim(ratio_at_least=1.3))
SMALL_CPU = Measure("ProducerPerformance 100 B: broker CPU", "s/GB", False, Aim(ratio_at_most=0.5))
CONSUME = Measure("ConsumerPerformance 1 KB", "MB/s", True, Aim(ratio_at_least=1.0))
CONSUME_CPU = Measure("ConsumerPerformance 1 KB: broker CPU", "s/GB", False, Aim(ratio_at_most=1.0))
LATENCY = Measure("EndToEndLatency, mean", "ms", False, Aim(ratio_at_most=0.8))
LATENCY_CPU = Measure("EndToEndLatency: broker CPU each", "µs", False)
SMALL_RECORDS = 8_000_000


def measure_tools(bench: Bench) -> Iterator[None]:
    """One tool after the other."""
    broker = bench.broker
    for topic in ("tool-1024", "tool-100", "tool-latency"):
        bench.create_topic(topic)
    count = bench.size(1_600_000, 150_000)
    watch = java_tools.producer_performance(broker, "tool-1024", 1024, count, "all")
    _note(bench, PRODUCE, PRODUCE_CPU, watch)
    yield
    if not bench.quick:
        watch = java_tools.producer_performance(broker, "tool-100", 100, SMALL_RECORDS, "1")
        _note(bench, SMALL, SMALL_CPU, watch)
        yield
    _note(bench, CONSUME, CONSUME_CPU, java_tools.consumer_performance(broker, "tool-1024", 1024, count))
    yield
    count = bench.size(8_000, 1_500)
    watch = java_tools.end_to_end_latency(broker, "tool-latency", count)
    bench.note(LATENCY, watch.result["mean"], watch)
    bench.note(LATENCY_CPU, watch.broker_cpu_seconds / count * 1e6)


def _note(bench: Bench, speed: Measure, cpu: Measure, watch: Stopwatch) -> None:
    bench.note(speed, watch.result["MB/s"], watch)
    bench.note(cpu, watch.broker_cpu_seconds / (watch.result["bytes"] / 1e9))


TOOLS_PART = Part(
    "tools",
    SECTION,
    (PRODUCE, PRODUCE_CPU, SMALL, SMALL_CPU, CONSUME, CONSUME_CPU, LATENCY, LATENCY_CPU),
    measure_tools,
    seconds=60,
)
