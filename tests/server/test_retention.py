"""Retention and flushing as configured, for the broker and for a topic, and changed while the broker runs."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.log_store.log import Log
from ottla.metadata.controller.plan import Plan
from ottla.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from ottla.metadata.records import ConfigRecord, MetadataRecord, PartitionRecord, TopicRecord
from ottla.server.broker import Broker
from ottla.wire.records import Record, build_batch

DAY_MS = 86_400_000
MB = 1 << 20


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "log.segment.bytes": str(MB),
        "log.retention.ms": str(7 * DAY_MS),
    }
    config = BrokerConfig.load(settings)
    opened = await Broker.open(config, config.listeners(), random.Random(1))
    await make_topics(opened, "t", "other")
    yield opened
    await opened.close()


async def make_topics(broker: Broker, *names: str) -> None:
    (directory,) = broker.store.directory_ids.values()
    records: list[MetadataRecord] = []
    for name in names:
        topic_id = name.encode().ljust(16)
        records.append(TopicRecord(name=name, topic_id=topic_id))
        records.append(
            PartitionRecord(
                partition_id=0,
                topic_id=topic_id,
                replicas=[broker.node_id],
                isr=[broker.node_id],
                leader=broker.node_id,
                directories=[directory],
            )
        )
    await broker.decide(lambda image: Plan(records, None))


async def set_topic(broker: Broker, topic: str, name: str, value: object) -> None:
    record = ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic, name=name, value=str(value))
    await broker.decide(lambda image: Plan([record], None))


async def set_broker(broker: Broker, name: str, value: object) -> None:
    record = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=name, value=str(value))
    await broker.decide(lambda image: Plan([record], None))


def log_of(broker: Broker, topic: str = "t") -> Log:
    return broker.partitions.by_name(topic, 0).log


def append(broker: Broker, age_ms: int, size: int = 600_000, topic: str = "t") -> bool:
    """A record that is so old; whether the policy asks for a flush."""
    now_ms = broker.now_ms()
    records = build_batch([Record(0, now_ms - age_ms, b"k", bytes(size), ())])
    return broker.partitions.by_name(topic, 0).append(memoryview(bytearray(records)), now_ms).flush_due


async def test_retention_ms(broker: Broker) -> None:
    """The broker's goes for every topic, the topic's over it, and a change counts at the next look."""
    for age_days in (10, 5, 2, 0):
        append(broker, age_days * DAY_MS)
    log = log_of(broker)
    await broker.maintenance.enforce_retention()
    assert log.log_start_offset == 1
    await set_broker(broker, "log.retention.ms", 3 * DAY_MS)
    await broker.maintenance.enforce_retention()
    assert log.log_start_offset == 2
    await set_topic(broker, "t", "retention.ms", DAY_MS)
    await broker.maintenance.enforce_retention()
    assert log.log_start_offset == 3
    assert log.high_watermark == log.log_end_offset == 4


async def test_retention_bytes(broker: Broker) -> None:
    """Segments go from the oldest on as long as what is left is enough."""
    for _ in range(6):
        append(broker, 0)
    log = log_of(broker)
    await broker.maintenance.enforce_retention()
    assert log.log_start_offset == 0
    await set_topic(broker, "t", "retention.bytes", 2 * MB)
    await broker.maintenance.enforce_retention()
    assert log.size_bytes >= 2 * MB
    assert log.log_start_offset == 2
    await set_broker(broker, "log.retention.bytes", 1)
    await broker.maintenance.enforce_retention()
    assert log.log_start_offset == 2


async def test_segment_ms_and_jitter(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment is rolled by the append that is so much younger than its first record; jitter rolls earlier."""
    log = log_of(broker)
    append(broker, 4000, size=10)
    append(broker, 0, size=10)
    assert len(log.segments) == 1
    await set_topic(broker, "t", "segment.ms", 5000)
    append(broker, 0, size=10)
    assert len(log.segments) == 1
    monkeypatch.setattr("random.randrange", lambda stop: stop - 1)
    await set_topic(broker, "t", "segment.jitter.ms", 2000)
    append(broker, 0, size=10)
    assert len(log.segments) == 2


async def test_a_quiet_partition_is_not_rolled_but_expires(broker: Broker) -> None:
    """Time alone rolls nothing; when all is past retention, an empty segment takes the place of the active one."""
    log = log_of(broker)
    append(broker, 3 * DAY_MS, size=10)
    await set_topic(broker, "t", "segment.ms", 1000)
    await broker.maintenance.enforce_retention()
    assert [segment.base_offset for segment in log.segments] == [0]
    await set_topic(broker, "t", "retention.ms", DAY_MS)
    await broker.maintenance.enforce_retention()
    assert [segment.base_offset for segment in log.segments] == [1]
    assert (log.log_start_offset, log.log_end_offset) == (1, 1)
    append(broker, 0, size=10)
    assert log.log_end_offset == 2


async def test_each_topic_has_its_delay(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files go when the file.delete.delay.ms of their topic has passed since their deletion, not before."""
    await set_topic(broker, "t", "file.delete.delay.ms", 1000)
    await set_broker(broker, "log.segment.delete.delay.ms", 5000)
    for topic in ("t", "other"):
        append(broker, 10 * DAY_MS, topic=topic)
        append(broker, 0, topic=topic)
    await broker.maintenance.enforce_retention()

    def deleted(topic: str) -> int:
        return len(list(Path(log_of(broker, topic).directory).glob("*.log.deleted")))

    start_ms = broker.now_ms()
    left = []
    for after_ms in (0, 900, 1001, 4900, 5001):
        monkeypatch.setattr(broker, "now_ms", lambda now_ms=start_ms + after_ms: now_ms)
        await broker.maintenance.purge()
        left.append((deleted("t"), deleted("other")))
    assert left == [(1, 1), (1, 1), (0, 1), (0, 1), (0, 0)]


async def test_readers_of_a_deleted_segment_finish(broker: Broker) -> None:
    """What a fetch was told it gets is sent to the end, although the file is gone."""
    append(broker, 10 * DAY_MS)
    append(broker, 0)
    log = log_of(broker)
    slice_of_old = log.read(0, MB, upto=2, at_least_one=True).records
    assert slice_of_old is not None
    expected = slice_of_old.read()
    await broker.maintenance.enforce_retention()
    log.purge_deleted_files()
    assert not list(Path(log.directory).glob(f"{0:020d}.*"))
    assert slice_of_old.read() == expected


async def test_flush_messages(broker: Broker) -> None:
    """An append asks for a flush when so many messages are not on the disk yet."""
    log = log_of(broker)
    assert not append(broker, 0, size=10)
    await set_broker(broker, "log.flush.interval.messages", 3)
    assert [append(broker, 0, size=10) for _ in range(2)] == [False, True]
    log.flush()
    assert log.recovery_point == 3
    await set_topic(broker, "t", "flush.messages", 1)
    assert append(broker, 0, size=10)
    assert not append(broker, 0, size=10, topic="other")


async def test_flush_ms(broker: Broker) -> None:
    """What is older than flush.ms on the page cache alone is synced, from when it is set."""
    partition = broker.partitions.by_name("t", 0)
    append(broker, 0, size=10)
    partition.flushed_ms = broker.now_ms() - 10_000
    await broker.maintenance.flush_due_logs()
    assert partition.log.recovery_point == 0
    await set_topic(broker, "t", "flush.ms", 5000)
    await broker.maintenance.flush_due_logs()
    assert partition.log.recovery_point == 1
