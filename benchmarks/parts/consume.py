"""Consuming what is there: records of several sizes, one consumer and ten, with librdkafka and with the raw load."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import clients, raw_load
from benchmarks.bench import Bench, Part
from benchmarks.measures import Aim, Measure
from benchmarks.process_figures import Stopwatch
from benchmarks.report import Section

FASTER, CHEAPER = Aim(ratio_at_least=1.0), Aim(ratio_at_most=1.0)
CONSUMERS = 10
SMALL_READS = 7
RAW_FETCH_BATCHES = 8
BATCH_BYTES = 120_000  # about: fetches of the raw load are of eight batches, a megabyte
SECTION = Section(
    "Consume",
    f"""\
A consumer reads one partition from its beginning, from the page cache, with librdkafka's own limits of what it fetches
ahead, but `fetch.queue.backoff.ms=1`: by default it sleeps a second whenever its queue is full, which a quick broker
reaches sooner. Records of 100 B are read {SMALL_READS} times, by turns with the other broker, and the median speed is
taken (a short run reads them once): two threads of the client hand millions of pieces of memory to each other, and
where they happen to want the C library's lock at the same time, it reads a third less, from whichever broker.
{CONSUMERS} consumers, each a process, all read the whole topic at once. The raw load asks for a megabyte at a time,
with two requests under way on each connection.
{{rounds}}""",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What is read, and by how many."""

    title: str
    size: int
    full: int
    quick: int
    consumers: int = 1
    is_raw: bool = False
    reads: int = 1  # of all, one after the other, by turns with the other broker

    @property
    def speed(self) -> Measure:
        return Measure(self.title, "MB/s", True, FASTER)

    @property
    def cpu(self) -> Measure:
        return Measure(f"{self.title}: broker CPU", "s/GB", False, CHEAPER)


KINDS = (
    Kind("consume 100 B", 100, 2_000_000, 800_000, reads=SMALL_READS),
    Kind("consume 1 KB", 1024, 700_000, 300_000),
    Kind("consume 10 KB", 10_240, 80_000, 40_000),
    Kind(f"{CONSUMERS} consumers on one topic, 1 KB", 1024, 150_000, 40_000, consumers=CONSUMERS),
    Kind("raw consume 1 KB", 1024, 700_000, 300_000, is_raw=True),
    Kind(
        f"raw, {CONSUMERS} consumers on one topic, 1 KB",
        1024,
        300_000,
        60_000,
        consumers=CONSUMERS,
        is_raw=True,
    ),
)


def measure_consume(bench: Bench) -> Iterator[None]:
    """A topic for each size, filled by the raw load, and read once before the clock runs."""
    for size in dict.fromkeys(kind.size for kind in KINDS):
        topic = f"consume-{size}"
        bench.create_topic(topic)
        count = max(bench.size(kind.full, kind.quick) for kind in KINDS if kind.size == size)
        per_batch = BATCH_BYTES // size
        bench.run(
            raw_load.produce, topic=topic, size=size, records=per_batch, requests=count // per_batch + 1
        )
        for kind in (kind for kind in KINDS if kind.size == size):
            yield from _read(bench, topic, kind)


def _read(bench: Bench, topic: str, kind: Kind) -> Iterator[None]:
    count = bench.size(kind.full, kind.quick)
    _read_once(bench, topic, kind, count // 10)
    watches = []
    for _ in range(bench.size(kind.reads, 1)):
        watches.append(_read_once(bench, topic, kind, count))
        yield
    watches.sort(key=lambda watch: watch.seconds)
    usual = watches[len(watches) // 2]
    gigabytes = usual.result["bytes"] / 1e9
    bench.note(kind.speed, gigabytes * 1000 / usual.seconds, usual)
    bench.note(kind.cpu, sum(watch.broker_cpu_seconds for watch in watches) / (gigabytes * len(watches)))


def _read_once(bench: Bench, topic: str, kind: Kind, count: int) -> Stopwatch:
    per_batch = BATCH_BYTES // kind.size
    if kind.is_raw:
        return bench.run(
            raw_load.fetch,
            topic=topic,
            batch_bytes=len(raw_load.batch(kind.size, per_batch)),
            batch_records=per_batch,
            batches=count // per_batch,
            per_fetch=RAW_FETCH_BATCHES,
            connections=kind.consumers,
        )
    if kind.consumers > 1:
        return bench.run(clients.fetch_together, topic=topic, count=count, consumers=kind.consumers)
    return bench.run(clients.fetch, topic=topic, count=count)


CONSUME_PART = Part(
    "consume",
    SECTION,
    [measure for kind in KINDS for measure in (kind.speed, kind.cpu)],
    measure_consume,
    seconds=45,
)
