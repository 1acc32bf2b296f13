"""The broker's chores, each done once by hand on a live broker's logs."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from ottla.config.broker_config import BrokerConfig
from ottla.log_store.validation import AppendOrigin
from ottla.metadata.controller.plan import Plan
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import PartitionRecord, TopicRecord
from ottla.server.broker import Broker
from ottla.server.maintenance import Maintenance
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records import Record, build_batch

SETTINGS = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.segment.bytes": "1048576"}
TOPIC_ID = bytes(range(16))


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    config = BrokerConfig.load({**SETTINGS, "log.dirs": str(tmp_path), "log.flush.interval.ms": "1000"})
    opened = await Broker.open(config, config.listeners(), random.Random(1))
    await opened.decide(lambda image: Plan(topic_records(opened, image), None))
    yield opened
    await opened.close()


def topic_records(broker: Broker, image: MetadataImage) -> list[TopicRecord | PartitionRecord]:
    (directory,) = broker.store.directory_ids.values()
    node = broker.node_id
    return [
        TopicRecord(name="t", topic_id=TOPIC_ID),
        PartitionRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            replicas=[node],
            isr=[node],
            leader=node,
            directories=[directory],
            leader_epoch=0,
        ),
    ]


def append(broker: Broker, timestamp: int, size: int = 700_000) -> None:
    records = build_batch([Record(0, timestamp, b"k", bytes(size), ())])
    broker.partitions.by_name("t", 0).append(memoryview(bytearray(records)), broker.now_ms())


async def test_retention_deletes_old_segments_and_purging_their_files(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records older than retention.ms go, and the files when file.delete.delay.ms has passed."""
    for _ in range(3):
        append(broker, timestamp=1000)
    append(broker, timestamp=broker.now_ms())
    log = broker.partitions.by_name("t", 0).log
    await broker.maintenance.enforce_retention()
    assert (log.log_start_offset, log.log_end_offset) == (3, 4)
    assert len(list(Path(log.directory).glob("*.log"))) == 1
    await broker.maintenance.purge()
    assert len(list(Path(log.directory).glob("*.log.deleted"))) == 3
    clock_ms = broker.now_ms()
    monkeypatch.setattr(broker, "now_ms", lambda: clock_ms + 60_001)
    await broker.maintenance.purge()
    assert not list(Path(log.directory).glob("*.deleted"))
    assert not log.deleted_files


async def test_rolled_segments_and_old_data_are_flushed(broker: Broker) -> None:
    """A rolled segment at once, the active one after flush.ms."""
    partition = broker.partitions.by_name("t", 0)
    append(broker, broker.now_ms())
    append(broker, broker.now_ms())
    await broker.maintenance.flush_due_logs()
    assert partition.log.recovery_point == 2
    append(broker, broker.now_ms(), size=10)
    partition.flushed_ms = broker.now_ms()
    await broker.maintenance.flush_due_logs()
    assert partition.log.recovery_point == 2
    partition.flushed_ms -= 1001
    await broker.maintenance.flush_due_logs()
    assert partition.log.recovery_point == 3


async def test_checkpoints_are_written(broker: Broker) -> None:
    """The high watermark of every partition is in its file."""
    append(broker, broker.now_ms(), size=10)
    await broker.maintenance.write_high_watermarks()
    (directory,) = broker.logs.directories
    assert (Path(directory.path) / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 1\n"


async def test_a_chore_that_fails_is_tried_again(broker: Broker, autojump_clock: trio.abc.Clock) -> None:
    """A full disk does not end the broker."""
    tries = []

    class Failing(Maintenance):
        async def write_high_watermarks(self) -> None:
            tries.append(1)
            raise (
                OSError(28, "No space left on device")
                if len(tries) % 2
                else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
            )

    with trio.move_on_after(200):
        await Failing(broker).run()
    assert len(tries) >= 3


async def test_a_chore_with_a_bug_is_told_and_tried_again(
    broker: Broker, autojump_clock: trio.abc.Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a chore nor the purge that a deletion starts can end the broker."""
    tries = []

    class Buggy(Maintenance):
        async def write_high_watermarks(self) -> None:
            tries.append("checkpoints")
            raise ZeroDivisionError

        async def purge(self) -> None:
            tries.append("purge")
            raise OSError(5, "Input/output error")

    with trio.move_on_after(200):
        await Buggy(broker).run()
    assert tries.count("checkpoints") >= 3
    assert tries.count("purge") >= 2
    assert "ZeroDivisionError" in caplog.text


async def test_idle_producers_are_forgotten(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """After producer.id.expiration.ms as it is set now; a producer with an open transaction stays."""
    partition = broker.partitions.by_name("t", 0)
    for producer_id in (1, 2):
        batch = build_batch(
            [Record(0, 1000, None, b"v")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=producer_id == 2,
        )
        partition.append(memoryview(bytearray(batch)), 1000, AppendOrigin.COORDINATOR)
    monkeypatch.setattr(broker, "now_ms", lambda: 2000)
    await broker.maintenance.forget_idle_producers()
    assert partition.log.producers.producers.keys() == {1, 2}
    config = broker.logs.configs.broker.with_properties({"producer.id.expiration.ms": "1000"})
    monkeypatch.setattr(broker.logs.configs, "broker", config)
    await broker.maintenance.forget_idle_producers()
    assert partition.log.producers.producers.keys() == {2}
