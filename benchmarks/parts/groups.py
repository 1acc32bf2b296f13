"""Groups of both protocols and commits."""

from benchmarks import classic_groups, consumer_groups
from benchmarks.bench import Bench, Part
from benchmarks.report import GROUPS

MEASURES = (
    classic_groups.STABLE,
    classic_groups.STABLE_CPU,
    classic_groups.COMMITTED,
    classic_groups.COMMIT_CPU,
    classic_groups.HEARTBEATS,
    classic_groups.HEARTBEAT_CPU,
    consumer_groups.STABLE,
    consumer_groups.STABLE_CPU,
    consumer_groups.HEARTBEATS,
    consumer_groups.CPU,
)
# Waiting for more members and for the next assignment is a choice, not work: neither broker waits.
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.consumer.assignment.interval.ms": "0"}


def measure_groups(bench: Bench) -> None:
    """One protocol after the other."""
    bench.note_all(classic_groups.measure_classic_groups(bench.broker))
    bench.note_all(consumer_groups.measure_consumer_groups(bench.broker))


GROUPS_PART = Part(
    "groups",
    GROUPS,
    MEASURES,
    measure_groups,
    shares_broker=False,
    properties=SETTINGS,
    in_quick=False,
    seconds=30,
)
