"""The same directory compacted by Ottla and by a real Kafka: the same records are left, and Kafka reads Ottla's."""

import random
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from compat_tests.eventually import eventually
from compat_tests.kafka.real import RealKafka
from ottla.config.topic_config import TopicConfig
from ottla.log_store.directory import LogDirectory
from ottla.log_store.verify.directory import DirectoryCheck, is_in_use
from ottla.log_store.verify.partition import VerifyOptions
from tests.log_store.compaction.rounds import clean_once
from tests.log_store.test_dump_log_segments import dump

TOPIC = "shared"
CONFIG = TopicConfig(segment_bytes=1 << 20, cleanup_policy=frozenset({"compact"}))
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "1.0",
}
KEYS = 60
Read = list[tuple[int, bytes | None, bytes | None, int]]


def produce(bootstrap: str) -> None:
    """Values and tombstones of several codecs, idempotent, and in transactions of both outcomes."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=SETTINGS)])[TOPIC].result(30)
    rng = random.Random(1)

    def send(producer: Producer, count: int, spread: int = KEYS) -> None:
        for _ in range(count):
            value = None if rng.random() < 0.1 else rng.randbytes(rng.randrange(3000))
            producer.produce(TOPIC, value, b"k%d" % rng.randrange(spread))
        assert producer.flush(60) == 0

    for codec in ("none", "zstd", "lz4", "gzip", "snappy"):
        settings = {"compression.type": codec, "enable.idempotence": True, "linger.ms": 5}
        send(Producer({"bootstrap.servers": bootstrap, "batch.num.messages": 20, **settings}), 500)
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "txn", "linger.ms": 5})
    transactional.init_transactions(60)
    for number in range(6):
        transactional.begin_transaction()
        send(transactional, 30, spread=KEYS // 2)
        if number % 2:
            transactional.commit_transaction(30)
        else:
            transactional.abort_transaction(30)
    send(Producer({"bootstrap.servers": bootstrap, "linger.ms": 5}), 500, spread=5)


def consume(bootstrap: str) -> Read:
    """What a read_committed consumer sees from the beginning: offset, key, value, timestamp."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: Read = []
    while True:
        message = consumer.poll(60)
        assert message is not None, f"nothing more after {found[-1:]}"
        if message.error():
            consumer.close()
            return found
        found.append((message.offset(), message.key(), message.value(), message.timestamp()[1]))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RealKafka, Path, Read]]:
    """A real Kafka that wrote everything and was stopped, a copy of its directory, and what was in it."""
    with RealKafka(properties={"log.cleaner.backoff.ms": "100"}) as running:
        produce(running.bootstrap)
        everything = consume(running.bootstrap)
        running.stop()
        copy = tmp_path_factory.mktemp("copy") / "data"
        shutil.copytree(running.data_dir, copy)
        yield running, copy, everything


def final_state(read: Read) -> dict[bytes | None, bytes]:
    state: dict[bytes | None, bytes] = {}
    for _, key, value, _ in read:
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
    return state


def findings(data_dir: Path) -> list[str]:
    """What `ottla log verify` says of a directory, but for replaced files that were to be removed a minute later."""
    check = DirectoryCheck(str(data_dir), VerifyOptions(in_use=is_in_use(str(data_dir))))
    found = [str(finding) for finding in check.run()]
    return [line for line in found if not line.endswith("left over: a file that waits for its removal")]


def test_same_as_kafka(kafka: tuple[RealKafka, Path, Read]) -> None:
    """Both leave the same offsets, keys, values and timestamps; each finds the other's files in order."""
    running, copy, everything = kafka
    directory = LogDirectory(copy)
    directory.open_logs(lambda topic: CONFIG, now_ms=time.time_ns() // 1_000_000)
    log = directory.logs[TOPIC, 0]
    end = log.active_segment.base_offset
    assert len(log.segments) > 3
    result = clean_once(log, time.time_ns() // 1_000_000)
    assert result is not None
    assert result.end_offset == end
    directory.close()
    dumped = "\n".join(dump(copy / f"{TOPIC}-0", "--deep-iteration").values())
    assert "deleteHorizonMs: OptionalLong[" in dumped
    assert not re.search(r"mismatch|not found|out of order|corrupt|isvalid: false", dumped, re.IGNORECASE)

    compacted = RealKafka(copy, properties={"log.cleaner.enable": "false"})
    with compacted:
        by_ottla = consume(compacted.bootstrap)
        said = compacted.log_path.read_text()
        compacted.stop()
    assert not re.search(rf"(WARN|ERROR).*{TOPIC}-0", said)

    running.start()
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    entry = ConfigEntry("min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)
    checkpoint = running.data_dir / "cleaner-offset-checkpoint"
    eventually(lambda: f"{TOPIC} 0 {end}\n" in checkpoint.read_text(), True)
    by_kafka = consume(running.bootstrap)
    assert findings(running.data_dir) == []  # beside the running broker
    running.stop()
    assert findings(running.data_dir) == []
    assert findings(copy) == []

    assert len(everything) - len(by_ottla) > 1000
    assert by_ottla == by_kafka
    assert final_state(by_ottla) == final_state(everything)
