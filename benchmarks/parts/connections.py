"""A thousand connections that do nothing, and one that works beside them."""

from benchmarks import raw_load
from benchmarks.bench import Bench, Part
from benchmarks.measures import Aim, Measure
from benchmarks.report import Section

COUNT = 1000
IDLE_SECONDS = 7
SECTION = Section(
    "Idle connections",
    f"""\
{COUNT:,} connections are opened one after the other, each asks for ApiVersions once they are all there, and then they
do nothing for seven seconds. Then one more sends records one after the other beside them. Memory is that of the whole
broker, with what it held before.
{{rounds}}""",
)
OPEN = Measure(f"{COUNT:,} connections opened and answered", "ms", False, Aim(ratio_at_most=1.0))
OPEN_CPU = Measure(f"{COUNT:,} connections opened and answered: broker CPU each", "µs", False)
MEMORY = Measure(f"resident memory with {COUNT:,} idle connections", "MB", False, Aim(ratio_at_most=0.15))
BESIDE = Measure(f"raw serial beside {COUNT:,} idle connections: p50", "ms", False, Aim(ratio_at_most=1.0))
BESIDE_P99 = Measure(
    f"raw serial beside {COUNT:,} idle connections: p99", "ms", False, Aim(ratio_at_most=1.0)
)

BESIDE_CPU = Measure(f"raw serial beside {COUNT:,} idle connections: broker CPU each", "µs", False)


def measure_connections(bench: Bench) -> None:
    """Once without a clock."""
    bench.create_topic("beside")
    serial_count = bench.size(3_000, 500)
    for idle_seconds in (0, bench.size(IDLE_SECONDS, 1)):
        watch = bench.run(
            raw_load.idle_connections,
            topic="beside",
            count=COUNT,
            serial_count=serial_count,
            idle_seconds=idle_seconds,
        )
    bench.note(OPEN, watch.seconds * 1000, watch)
    bench.note(OPEN_CPU, watch.broker_cpu_seconds / COUNT * 1e6)
    bench.note(MEMORY, watch.result["resident_mb"])
    bench.note(BESIDE, watch.result["p50"])
    bench.note(BESIDE_P99, watch.result["p99"])
    bench.note(BESIDE_CPU, watch.result["beside_cpu_seconds"] / serial_count * 1e6)


CONNECTIONS_PART = Part(
    "connections",
    SECTION,
    (OPEN, OPEN_CPU, MEMORY, BESIDE, BESIDE_P99, BESIDE_CPU),
    measure_connections,
    in_quick=False,
    seconds=6,
)
