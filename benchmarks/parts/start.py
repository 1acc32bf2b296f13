"""From the start of a process to its first acknowledgement, and the memory it holds: idle, and after all the load."""

from benchmarks.bench import SHARED_SETTINGS, Bench, Part
from benchmarks.measures import Aim, Measure
from benchmarks.process_figures import resident_mb
from benchmarks.report import Section

IDLE_SECONDS = 3
START = Measure(
    "process start to first acknowledgement", "s", False, Aim(ratio_at_most=0.06, value_at_most=0.4)
)
START_CPU = Measure("process start to first acknowledgement: broker CPU", "s", False)
IDLE = Measure("resident memory, idle", "MB", False, Aim(ratio_at_most=0.1))
LOADED = Measure("resident memory after the load", "MB", False, Aim(ratio_at_most=0.1))
START_SECTION = Section(
    "Start",
    """\
A small client of our own is there before the process of the broker is started, and knocks every millisecond; as soon
as it is let in, it sends a record with acks=all to a topic that does not exist yet, and asks again a millisecond later
where the broker is not ready. So neither the start of a client nor its pauses are in the figure. Kafka's directory
was formatted before; Ottla makes its own.
Memory is looked at three seconds later, when a broker has done what it does after its start.
{rounds}""",
)
MEMORY_SECTION = Section(
    "Memory after the load",
    """\
The process of all the parts above but the first, when they are over.
{rounds}""",
)


def measure_start(bench: Bench) -> None:
    """Right after the start."""
    bench.first.wait()
    bench.note(START, bench.first.seconds)
    bench.note(START_CPU, bench.first.broker_cpu_seconds)
    bench.rest(bench.size(IDLE_SECONDS, 1))
    bench.note(IDLE, resident_mb(bench.broker.pid))


def measure_memory(bench: Bench) -> None:
    """When all is over."""
    bench.note(LOADED, resident_mb(bench.broker.pid))


START_PART = Part(
    "start",
    START_SECTION,
    (START, START_CPU, IDLE),
    measure_start,
    shares_broker=False,
    properties=SHARED_SETTINGS,
    is_of_start=True,
    seconds=5,
)
MEMORY_PART = Part("memory", MEMORY_SECTION, (LOADED,), measure_memory, is_after_all=True, seconds=1)
