"""Producing as fast as it goes: records of several sizes, with librdkafka and with the raw load."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import clients, raw_load
from benchmarks.bench import Bench, Part
from benchmarks.measures import Aim, Measure
from benchmarks.process_figures import Stopwatch
from benchmarks.report import Section

FASTER, CHEAPER = Aim(ratio_at_least=1.3), Aim(ratio_at_most=0.5)
SECTION = Section(
    "Produce",
    """\
One producer sends to one partition, with librdkafka's own limits of a batch and `linger.ms=5`; the raw load sends
batches of the size that is named, with five requests under way. The aim of 1.3 × is for where the client is not the
limit; there it is 1 ×. MB are those of the records' values, before compression.
{rounds}""",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """Records of one kind: how many in a full and in a short run."""

    title: str
    size: int
    full: int
    quick: int
    acks: str = "all"
    codec: str = ""
    batch: int = 0  # records in a batch of the raw load, in place of librdkafka

    @property
    def speed(self) -> Measure:
        return Measure(self.title, "MB/s", True, FASTER)

    @property
    def cpu(self) -> Measure:
        return Measure(f"{self.title}: broker CPU", "s/GB", False, CHEAPER)


KINDS = (
    Kind("produce 1 KB, acks=all", 1024, 1_000_000, 200_000),
    Kind("produce 100 B, acks=1", 100, 4_000_000, 800_000, acks="1"),
    Kind("produce 10 KB, acks=all", 10_240, 100_000, 25_000),
    Kind("produce 1 KB text, lz4, idempotent", 1024, 600_000, 120_000, codec="lz4"),
    Kind("raw produce 1 KB, 1 MB batches, acks=all", 1024, 1_500_000, 400_000, batch=1000),
    Kind("raw produce 1 KB, 16 KB batches, acks=all", 1024, 600_000, 100_000, batch=16),
    Kind("raw produce 100 B, 1 MB batches, acks=1", 100, 8_000_000, 2_000_000, acks="1", batch=8000),
)


def measure_produce(bench: Bench) -> Iterator[None]:
    """Each kind to a topic of its own, with a tenth of it before the clock runs."""
    for number, kind in enumerate(KINDS):
        topic = f"produce-{number}"
        bench.create_topic(topic)
        count = bench.size(kind.full, kind.quick)
        _send(bench, topic, kind, count // 10)
        watch = _send(bench, topic, kind, count)
        gigabytes = count * kind.size / 1e9
        bench.note(kind.speed, gigabytes * 1000 / watch.seconds, watch)
        bench.note(kind.cpu, watch.broker_cpu_seconds / gigabytes)
        bench.delete_topics()
        yield


def _send(bench: Bench, topic: str, kind: Kind, count: int) -> Stopwatch:
    if kind.batch:
        return bench.run(
            raw_load.produce,
            topic=topic,
            size=kind.size,
            records=kind.batch,
            requests=max(count // kind.batch, 1),
            acks=-1 if kind.acks == "all" else int(kind.acks),
        )
    if kind.codec:
        return bench.run(
            clients.produce_text,
            topic=topic,
            size=kind.size,
            count=count,
            codec=kind.codec,
        )
    return bench.run(clients.produce, topic=topic, size=kind.size, count=count, acks=kind.acks)


PRODUCE_PART = Part(
    "produce",
    SECTION,
    [measure for kind in KINDS for measure in (kind.speed, kind.cpu)],
    measure_produce,
    seconds=40,
)
