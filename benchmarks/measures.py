"""One pass over a broker: every figure of the table, in order, with progress on the screen."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import clients
from benchmarks.process_figures import resident_mb
from compat_tests.broker_process import BrokerProcess


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work one pass does."""

    large_records: int
    small_records: int
    serial_requests: int
    parallel_requests: int
    rounds: int


WARM_UP_SECONDS = 15

FULL = Sizes(
    large_records=600_000,
    small_records=3_000_000,
    serial_requests=4_000,
    parallel_requests=60_000,
    rounds=3,
)
QUICK = Sizes(
    large_records=300_000,
    small_records=1_000_000,
    serial_requests=2_000,
    parallel_requests=24_000,
    rounds=1,
)


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table."""

    title: str
    unit: str
    more_is_better: bool


START = Measure("process start to first acknowledgement", "s", False)
IDLE = Measure("resident memory, idle", "MB", False)
PRODUCE = Measure("produce 1 KB records, acks=all", "MB/s", True)
PRODUCE_CPU = Measure("produce 1 KB records: broker CPU", "s/GB", False)
SMALL = Measure("produce 100 B records, acks=1", "records/s", True)
SMALL_CPU = Measure("produce 100 B records: broker CPU", "s/GB", False)
LZ4 = Measure("produce 1 KB of text, lz4, idempotent", "MB/s", True)
LZ4_CPU = Measure("produce 1 KB of text, lz4, idempotent: broker CPU", "s/GB", False)
FETCH = Measure("fetch 1 KB records", "MB/s", True)
FETCH_CPU = Measure("fetch 1 KB records: broker CPU", "s/GB", False)
SERIAL_P50 = Measure("one record at a time, acks=all: p50", "ms", False)
SERIAL_P99 = Measure("one record at a time, acks=all: p99", "ms", False)
PARALLEL = Measure("one record a request, 8 producers", "requests/s", True)
PARALLEL_CPU = Measure("one record a request: broker CPU each", "µs", False)
LOADED = Measure("resident memory after all this", "MB", False)

Figures = dict[Measure, float]


def measure(broker: BrokerProcess, sizes: Sizes, say: Callable[[Measure, float], None]) -> Figures:
    """Start the broker, take every figure, stop it."""
    figures: Figures = {}

    def note(what: Measure, value: float) -> None:
        figures[what] = value
        say(what, value)

    broker.prepare()
    started_at = time.perf_counter()
    with broker:
        # A client that comes as soon as the broker is ready, to a topic that does not exist yet.
        clients.serial_latencies_ms(broker, "first", 1)
        note(START, time.perf_counter() - started_at)
        note(IDLE, resident_mb(broker.pid))
        _warm_up(broker)

        clients.create_topic(broker, "large")
        with clients.timed(broker) as watch:
            clients.produce(broker, "large", bytes(1024), sizes.large_records, acks="all")
        gigabytes = sizes.large_records * 1024 / 1e9
        note(PRODUCE, gigabytes * 1000 / watch.seconds)
        note(PRODUCE_CPU, watch.broker_cpu_seconds / gigabytes)

        clients.create_topic(broker, "small")
        with clients.timed(broker) as watch:
            clients.produce(broker, "small", bytes(100), sizes.small_records, acks="1")
        note(SMALL, sizes.small_records / watch.seconds)
        note(SMALL_CPU, watch.broker_cpu_seconds / (sizes.small_records * 100 / 1e9))

        clients.create_topic(broker, "text")
        clients.produce_text(broker, "text", sizes.large_records // 10, "lz4")
        with clients.timed(broker) as watch:
            clients.produce_text(broker, "text", sizes.large_records, "lz4")
        note(LZ4, gigabytes * 1000 / watch.seconds)
        note(LZ4_CPU, watch.broker_cpu_seconds / gigabytes)

        with clients.timed(broker) as watch:
            size = clients.fetch(broker, "large", sizes.large_records)
        note(FETCH, size / 1e6 / watch.seconds)
        note(FETCH_CPU, watch.broker_cpu_seconds / (size / 1e9))

        clients.create_topic(broker, "serial")
        latencies = clients.serial_latencies_ms(broker, "serial", sizes.serial_requests)
        note(SERIAL_P50, statistics.median(latencies))
        note(SERIAL_P99, statistics.quantiles(latencies, n=100)[98])

        clients.create_topic(broker, "parallel", partitions=8)
        with clients.timed(broker) as watch:
            clients.small_requests(broker, "parallel", producers=8, count=sizes.parallel_requests)
        note(PARALLEL, sizes.parallel_requests / watch.seconds)
        note(PARALLEL_CPU, watch.broker_cpu_seconds / sizes.parallel_requests * 1e6)
        note(LOADED, resident_mb(broker.pid))
        broker.stop()
    return figures


def _warm_up(broker: BrokerProcess) -> None:
    """Some of everything for a while: a JIT compiler needs time rather than a certain amount of work."""
    clients.create_topic(broker, "warm-up")
    end = time.perf_counter() + WARM_UP_SECONDS
    while time.perf_counter() < end:
        clients.produce(broker, "warm-up", bytes(1024), 40_000, acks="all")
        for _ in range(3):
            clients.fetch(broker, "warm-up", 40_000)
        clients.serial_latencies_ms(broker, "warm-up", 200)
        clients.small_requests(broker, "warm-up", producers=8, count=2_000)
