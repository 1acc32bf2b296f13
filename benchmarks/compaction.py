"""`python -m benchmarks.compaction`: how fast Ottla and a real Kafka compact the same records, in turns.

Each broker gets the same records of each kind while nothing is dirty enough to be cleaned. Then the topic's
min.cleanable.dirty.ratio is lowered, and the clock runs until the broker notes in cleaner-offset-checkpoint that it
came to the active segment. A topic of each kind is compacted without a clock first, so that a JIT compiler has done
its work. What consumers end up with is read from both and must be the same. It writes its part of
docs/benchmarks.md; QUICK=1 for a short run.
"""

import hashlib
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from benchmarks.measures import Figures, Measure
from benchmarks.process_figures import OtherWork, cpu_seconds
from benchmarks.report import COMPACTION, caveat, shown, table, write_section
from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.real import KAFKA_DEFAULT_OPTIONS, RealKafka
from compat_tests.ottla_process import OttlaProcess

PATIENCE_SECONDS = 300
FLUSH_SECONDS = 3  # for both to get the last rolled segment to the disk, before which neither cleans it
START_MS = 1_700_000_000_000
BROKER_SETTINGS = {"log.cleaner.backoff.ms": "50"}
TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "1.0",
    "message.timestamp.type": "CreateTime",
}
BROKERS: dict[str, Callable[[], BrokerProcess]] = {
    "ottla": lambda: OttlaProcess(properties=BROKER_SETTINGS),
    "kafka": lambda: RealKafka(properties=BROKER_SETTINGS, java_options=KAFKA_DEFAULT_OPTIONS),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """Records of one shape: how many keys there are, and what a value is made of."""

    name: str
    keys: int
    value: Callable[[random.Random], bytes]
    codec: str = "none"
    segment_bytes: int = 16 << 20
    batch_records: int = 10_000  # at most
    share: float = 1.0  # of the megabytes of a run


def _event(rng: random.Random) -> bytes:
    """Something like what applications keep: a small JSON document of no certain length."""
    fields = {
        "id": rng.randrange(10**6),
        "state": rng.choice(("new", "paid", "sent")),
        "note": rng.randbytes(rng.randrange(100)).hex(),
    }
    return json.dumps(fields).encode()


_LARGE = random.Random(7).randbytes(1 << 16)


def _small(rng: random.Random) -> bytes:
    at = rng.randrange(60_000)
    return _LARGE[at : at + 100]


KINDS = (
    Kind("1 KB values", 50_000, lambda rng: _LARGE[(at := rng.randrange(60_000)) : at + 1024]),
    Kind("100 B values", 200_000, _small),
    Kind("JSON of 50 to 250 B", 200_000, _event),
    Kind("JSON of 50 to 250 B, zstd", 200_000, _event, "zstd", 4 << 20),
    Kind("JSON, 20 records a batch", 50_000, _event, segment_bytes=4 << 20, batch_records=20, share=0.25),
    Kind("JSON, 5 records a batch", 50_000, _event, segment_bytes=4 << 20, batch_records=5, share=0.25),
    Kind("JSON, 1 record a batch", 20_000, _event, segment_bytes=1 << 20, batch_records=1, share=0.1),
    Kind("100 B values, 2 million keys", 2_000_000, _small),
)


def records(kind: Kind, megabytes: int) -> Iterator[tuple[bytes, bytes]]:
    """The same keys and values every time."""
    rng = random.Random(kind.name)
    size = 0
    while size < (megabytes << 20) * kind.share:
        value = kind.value(rng)
        size += len(value) + 20
        yield b"key-%08d" % rng.randrange(kind.keys), value


def fill(broker: BrokerProcess, topic: str, kind: Kind, megabytes: int) -> None:
    """Make the topic and produce its records."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    settings = {**TOPIC_SETTINGS, "segment.bytes": str(kind.segment_bytes)}
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(PATIENCE_SECONDS)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "linger.ms": 20,
            "compression.type": kind.codec,
            "batch.num.messages": kind.batch_records,
            "delivery.report.only.error": True,
            "log_level": 0,
        }
    )
    for number, (key, value) in enumerate(records(kind, megabytes)):
        while True:
            try:
                producer.produce(topic, value, key, timestamp=START_MS + number // 100)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(PATIENCE_SECONDS) == 0


def log_files(broker: BrokerProcess, topic: str) -> list[tuple[int, int]]:
    """Base offset and size of each segment, the active one last."""
    directory = broker.data_dir / f"{topic}-0"
    return sorted((int(path.stem), path.stat().st_size) for path in directory.glob("*.log"))


def checkpoint(broker: BrokerProcess, topic: str) -> int:
    """How far the broker says that it cleaned."""
    path = broker.data_dir / "cleaner-offset-checkpoint"
    if path.exists():
        for line in path.read_text().splitlines()[2:]:
            name, _, offset = line.rsplit(" ", 2)
            if name == topic:
                return int(offset)
    return -1


def compact(broker: BrokerProcess, topic: str) -> tuple[float, int]:
    """Let it be cleaned; the seconds until it was, and the bytes there were."""
    time.sleep(FLUSH_SECONDS)
    files = log_files(broker, topic)
    active = files[-1][0]
    assert active > 0, "nothing but the active segment"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    entry = ConfigEntry("min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    started = time.perf_counter()
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_SECONDS)
    while checkpoint(broker, topic) < active:
        assert time.perf_counter() - started < PATIENCE_SECONDS, broker.log_tail()
        time.sleep(0.005)
    return time.perf_counter() - started, sum(size for _, size in files[:-1])


def final_state(broker: BrokerProcess, topic: str) -> tuple[int, str]:
    """How many records are left, and a digest of the last value of each key."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: dict[bytes | None, bytes | None] = {}
    count = 0
    while (message := consumer.poll(PATIENCE_SECONDS)) is not None and not message.error():
        values[message.key()] = message.value()
        count += 1
    consumer.close()
    return count, hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()


def main() -> int:
    """Fill, compact and compare; print the table, write it into the page."""
    quick = os.environ.get("QUICK", "") not in ("", "0")
    megabytes, rounds = (60, 1) if quick else (200, 3)
    others = OtherWork()
    results: dict[str, list[Figures]] = {name: [{} for _ in range(rounds)] for name in BROKERS}
    for number in range(rounds):
        states: dict[str, set[str]] = {kind.name: set() for kind in KINDS}
        for name, make in BROKERS.items():
            with make() as broker:
                for index, kind in enumerate(KINDS):
                    fill(broker, f"warm-up-{index}", kind, 60)
                    compact(broker, f"warm-up-{index}")
                for index, kind in enumerate(KINDS):
                    topic = f"kind-{index}"
                    fill(broker, topic, kind, megabytes)
                    cpu_before = cpu_seconds(broker.pid, with_children=True)
                    seconds, size = compact(broker, topic)
                    time.sleep(FLUSH_SECONDS)  # for the process that cleaned to be gone and counted
                    cpu = cpu_seconds(broker.pid, with_children=True) - cpu_before
                    what = Measure(f"compaction, {kind.name}", "MB/s", True)
                    results[name][number][what] = size / 1e6 / seconds
                    what_cpu = Measure(f"compaction, {kind.name}: CPU", "s/GB", False)
                    results[name][number][what_cpu] = cpu / (size / 1e9)
                    count, state = final_state(broker, topic)
                    states[kind.name].add(state)
                    print(
                        f"[{number + 1}/{rounds}] {name:6} {what.title:40} {shown(what, size / 1e6 / seconds):>10}"
                        f" ({size / 1e6:.0f} MB in {seconds:.2f} s, {cpu:.2f} s of CPU, {count:,} records left)",
                        flush=True,
                    )
        assert all(len(found) == 1 for found in states.values()), "the brokers differ in what is left"
    other_cores = others.cores()
    print(f"\n{table(results)}\n\n{caveat(other_cores)}", end="")
    print(f"written to {write_section(COMPACTION, results, other_cores)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
