"""Very many partitions: a thousand that are made and written to, and five thousand that do nothing."""

import time

from benchmarks import raw_load
from benchmarks.bench import Bench, Part
from benchmarks.measures import Aim, Measure
from benchmarks.process_figures import cpu_seconds, resident_mb
from benchmarks.report import Section
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import CREATE_VERSION, LIST_OFFSETS_VERSION
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

WRITTEN, IDLE = 1000, 5000
LOOK_SECONDS = 3
PATIENCE_SECONDS = 300
PAUSE_SHARE = 0.04
SECTION = Section(
    "Many partitions",
    f"""\
A broker that has just been started makes a topic of {WRITTEN:,} partitions, and each is written to once; then a topic
of {IDLE:,} partitions more, which nobody uses. A topic is made when the leader of every partition answers for it.
Memory is that of the whole broker.
{{rounds}}""",
)
NO_SLOWER, LIGHTER = Aim(ratio_at_most=1.0), Aim(ratio_at_most=0.15)
CREATE = Measure(f"{WRITTEN:,} partitions made", "s", False, NO_SLOWER)
CREATE_CPU = Measure(f"{WRITTEN:,} partitions made: broker CPU", "s", False)
WRITE = Measure(f"{WRITTEN:,} partitions, each written once", "s", False, NO_SLOWER)
WRITE_CPU = Measure(f"{WRITTEN:,} partitions, each written once: broker CPU", "s", False)
WRITE_MEMORY = Measure(f"{WRITTEN:,} partitions, each written once: resident memory", "MB", False, LIGHTER)
CREATE_IDLE = Measure(f"{IDLE:,} partitions made", "s", False, NO_SLOWER)
CREATE_IDLE_CPU = Measure(f"{IDLE:,} partitions made: broker CPU", "s", False)
IDLE_MEMORY = Measure(f"{IDLE:,} idle partitions: resident memory", "MB", False, LIGHTER)
IDLE_CPU = Measure(f"{IDLE:,} idle partitions: broker CPU", "% of a core", False, NO_SLOWER)


def measure_partitions(bench: Bench) -> None:
    """The brokers are not warm: making topics is what happens once."""
    broker = bench.broker
    _make(bench, "written", WRITTEN, CREATE, CREATE_CPU)
    watch = bench.run(
        raw_load.produce,
        topic="written",
        size=100,
        records=1,
        requests=WRITTEN,
        connections=8,
        partitions=WRITTEN,
    )
    bench.note(WRITE, watch.seconds, watch)
    bench.note(WRITE_CPU, watch.broker_cpu_seconds)
    bench.note(WRITE_MEMORY, resident_mb(broker.pid))
    _make(bench, "idle", IDLE, CREATE_IDLE, CREATE_IDLE_CPU)
    bench.note(IDLE_MEMORY, resident_mb(broker.pid))
    bench.rest(bench.size(LOOK_SECONDS, 1))
    cpu = cpu_seconds(broker.pid, with_children=True)
    seconds = bench.size(LOOK_SECONDS, 1)
    bench.rest(seconds)
    used = cpu_seconds(broker.pid, with_children=True) - cpu
    bench.note(IDLE_CPU, max(used / seconds * 100, 0.01))


def _make(bench: Bench, topic: str, partitions: int, time_taken: Measure, cpu: Measure) -> None:
    before = cpu_seconds(bench.broker.pid, with_children=True)
    bench.note(time_taken, _seconds_to_make(bench, topic, partitions))
    bench.note(cpu, cpu_seconds(bench.broker.pid, with_children=True) - before)


def _seconds_to_make(bench: Bench, topic: str, partitions: int) -> float:
    """How long it takes until every partition is served. Asking costs the broker time too, so the pauses grow."""
    indexes = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
    question = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=indexes)])
    before = time.perf_counter()
    with RawClient("127.0.0.1", bench.broker.port, PATIENCE_SECONDS) as raw:
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=60_000)
        (result,) = raw.send(request, CREATE_VERSION).topics
        # A broker that gives up waiting goes on making the topic.
        assert result.error_code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT), result.error_message
        while True:
            (answer,) = raw.send(question, LIST_OFFSETS_VERSION).topics
            elapsed = time.perf_counter() - before
            if all(each.error_code == ErrorCode.NONE for each in answer.partitions):
                return elapsed
            assert elapsed < PATIENCE_SECONDS, "not every partition is served"
            bench.rest(max(elapsed * PAUSE_SHARE, 0.02))


PARTITIONS_PART = Part(
    "partitions",
    SECTION,
    (CREATE, CREATE_CPU, WRITE, WRITE_CPU, WRITE_MEMORY, CREATE_IDLE, CREATE_IDLE_CPU, IDLE_MEMORY, IDLE_CPU),
    measure_partitions,
    shares_broker=False,
    keeps_files=True,
    in_quick=False,
    seconds=35,
)
