"""The background compaction of a live broker: its process, its checkpoint, and what keeps it from a log."""

import errno
import os
import random
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from ottla.config.broker_config import BrokerConfig
from ottla.log_store.compaction.job import Answer, CleaningFailed, CleaningJob
from ottla.log_store.compaction.process import command
from ottla.log_store.log import Log
from ottla.metadata.controller.plan import Plan
from ottla.metadata.image import TOPIC_RESOURCE
from ottla.metadata.records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from ottla.server.broker import Broker
from ottla.server.cleaner_process import CleanerProcess
from ottla.wire.records import Record, build_batch, iter_batches, iter_records

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "log.segment.bytes": "1048576",
    "log.cleaner.backoff.ms": "1",
}
TOPIC_ID = bytes(range(16))
KEYS = 5


@pytest.fixture
async def broker(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Broker]:
    settings = getattr(request, "param", {})
    config = BrokerConfig.load({**SETTINGS, **settings, "log.dirs": str(tmp_path)})
    opened = await Broker.open(config, config.listeners(), random.Random(1))
    (directory,) = opened.store.directory_ids.values()
    node = opened.node_id
    records = [
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
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="cleanup.policy", value="compact"),
    ]
    await opened.decide(lambda image: Plan(records, None))
    yield opened
    await opened.close()


def fill(broker: Broker, count: int = 20) -> Log:
    """Some segments of a few keys, on the disk."""
    partition = broker.partitions.by_name("t", 0)
    for number in range(count):
        key = b"k%d" % (number % KEYS)
        records = build_batch([Record(0, broker.now_ms(), key, b"%d" % number + bytes(300_000))])
        partition.log.append(memoryview(bytearray(records)), leader_epoch=0, now_ms=broker.now_ms())
    partition.log.advance_high_watermark(partition.log.log_end_offset)
    partition.log.flush()
    return partition.log


def keys_of(log: Log) -> list[tuple[int, bytes | None]]:
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        records = log.read(offset, 1 << 20, upto=log.log_end_offset, at_least_one=True).records
        if records is None:
            break
        batches = list(iter_batches(memoryview(records.read())))
        found += [(record.offset, record.key) for view in batches for record in iter_records(view)]
        offset = batches[-1].next_offset
    return found


async def clean_all(broker: Broker) -> int:
    """What a worker does until nothing is dirty enough."""
    count = 0
    async with CleanerProcess() as process:
        while (dirty := await broker.cleaner.choose()) is not None:
            assert await broker.cleaner.clean(dirty, process)
            count += 1
    return count


async def test_cleaning_in_the_process(broker: Broker, tmp_path: Path) -> None:
    """The last record of each key stays, the checkpoint is written, and no file is left behind."""
    log = fill(broker)
    end = log.active_segment.base_offset
    assert await clean_all(broker) == 1
    below = [key for offset, key in keys_of(log) if offset < end]
    assert sorted(below) == [b"k%d" % number for number in range(KEYS)]
    assert [offset for offset, _ in keys_of(log) if offset >= end] == list(range(end, 20))
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == f"0\n1\nt 0 {end}\n"
    log.purge_deleted_files()
    names = os.listdir(log.directory)
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
    assert len([name for name in names if name.endswith(".log")]) == len(log.segments)


class RefusingProcess(CleanerProcess):
    """Notes the job it is given, and does not do it."""

    job: CleaningJob

    async def answers(self, job: CleaningJob) -> AsyncGenerator[Answer, None]:
        self.job = job
        yield CleaningFailed("not now")


@pytest.mark.parametrize(
    "broker",
    [
        {
            "log.cleaner.threads": "2",
            "log.cleaner.dedupe.buffer.size": "8000000",
            "log.cleaner.io.buffer.size": "400000",
            "log.cleaner.io.buffer.load.factor": "0.5",
            "log.cleaner.io.max.bytes.per.second": "3000",
        }
    ],
    indirect=True,
)
async def test_settings_reach_the_process(broker: Broker) -> None:
    """Memory and bytes per second are those of all workers together, so each has its share."""
    fill(broker)
    dirty = await broker.cleaner.choose()
    assert dirty is not None
    async with RefusingProcess() as process:
        assert not await broker.cleaner.clean(dirty, process)
        job = process.job
    assert (job.key_map_bytes, job.buffer_bytes) == (4_000_000, 100_000)
    assert (job.load_factor, job.max_bytes_per_second) == (0.5, 1500.0)


async def test_compact_and_delete(broker: Broker) -> None:
    """With both policies what compaction leaves is deleted by retention, and the next round goes on behind that."""
    log = fill(broker)
    both = frozenset({"compact", "delete"})
    log.update_config(replace(log.config, cleanup_policy=both, retention_bytes=1_000_000))
    for _ in range(2):
        before = log.log_start_offset
        end = log.active_segment.base_offset
        assert await clean_all(broker) == 1
        assert before < log.log_start_offset <= end
        left = [key for offset, key in keys_of(log) if offset < end]
        assert len(left) == len(set(left))
        assert sum(segment.size for segment in log.segments[1:]) < 1_000_000
        fill(broker)


async def test_reader_of_a_replaced_segment(broker: Broker) -> None:
    """A slice that was handed out before goes on giving the old bytes."""
    log = fill(broker)
    before = log.read(0, 700_000, upto=log.log_end_offset, at_least_one=True).records
    assert before is not None
    expected = before.read()
    await clean_all(broker)
    log.purge_deleted_files()
    assert before.read() == expected


async def test_workers_run_in_the_background(broker: Broker) -> None:
    """A running broker cleans without being asked, and stops in the middle of it when it is stopped."""
    log = fill(broker)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.run_background)
        with trio.fail_after(60):
            while log.cleaner_checkpoint is None:
                await trio.sleep(0.01)
        fill(broker)
        nursery.cancel_scope.cancel()
    assert not [name for name in os.listdir(log.directory) if name.endswith(".cleaned")]


async def test_disabled(tmp_path: Path) -> None:
    """log.cleaner.enable=false: there are no workers."""
    config = BrokerConfig.load({**SETTINGS, "log.dirs": str(tmp_path), "log.cleaner.enable": "false"})
    opened = await Broker.open(config, config.listeners(), random.Random(1))
    await opened.cleaner.run()  # returns
    await opened.close()


def fail_in_the_process(monkeypatch: pytest.MonkeyPatch, operation: str, number: int) -> None:
    """Let the process that cleans have a file system where an operation fails."""
    code = command()[-1].removesuffix("main()")
    code += "from ottla.log_store.files import OsFileSystem\n"
    code += f"def fail(*arguments): raise OSError({number}, 'as the test wants it')\n"
    code += f"OsFileSystem.{operation} = staticmethod(fail)\nmain()"
    monkeypatch.setattr("ottla.server.cleaner_process.command", lambda: [sys.executable, "-c", code])


@pytest.mark.parametrize(
    ("operation", "number"), [("pwrite", errno.ENOSPC), ("fsync", errno.EIO), ("pread", errno.EIO)]
)
async def test_failing_disk(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, operation: str, number: int
) -> None:
    """What the disk refuses the process takes the log directory offline, and leaves no file behind."""
    log = fill(broker)
    fail_in_the_process(monkeypatch, operation, number)
    dirty = await broker.cleaner.choose()
    assert dirty is not None
    async with CleanerProcess() as process:
        assert not await broker.cleaner.clean(dirty, process)
    assert log.failure is not None
    assert log.failure.errno == number
    assert await broker.cleaner.choose() is None
    assert not [name for name in os.listdir(log.directory) if name.endswith(".cleaned")]


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EMFILE])
async def test_what_is_no_fault_of_the_disk(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Files that are gone, or a want of descriptors: the log serves on, and is cleaned at another time."""
    log = fill(broker)
    with monkeypatch.context() as patched:
        fail_in_the_process(patched, "open", number)
        dirty = await broker.cleaner.choose()
        assert dirty is not None
        async with CleanerProcess() as process:
            assert not await broker.cleaner.clean(dirty, process)
    assert log.failure is None
    assert await clean_all(broker) == 1


async def test_damaged_log_is_left_alone(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """A wrong checksum is told once; the log is not tried again, and nothing of it was changed."""
    log = fill(broker)
    with open(log.segments[0].file.path, "r+b") as file:
        file.seek(500)
        file.write(b"damage")
    before = sorted(os.listdir(log.directory))
    dirty = await broker.cleaner.choose()
    assert dirty is not None
    async with CleanerProcess() as process:
        assert not await broker.cleaner.clean(dirty, process)
    assert await broker.cleaner.choose() is None
    assert [record.message for record in caplog.records if "not compacted any more" in record.message]
    assert sorted(os.listdir(log.directory)) == before
    assert log.cleaner_checkpoint is None


async def test_segments_deleted_meanwhile(broker: Broker) -> None:
    """DeleteRecords wins over a round that is under way, which leaves nothing behind."""
    log = fill(broker)
    dirty = await broker.cleaner.choose()
    assert dirty is not None

    class Overtaken(CleanerProcess):
        async def _line(self, process: trio.Process) -> bytes:
            line = await super()._line(process)
            log.delete_records_before(8)
            return line

    async with Overtaken() as process:
        assert not await broker.cleaner.clean(dirty, process)
    assert not [name for name in os.listdir(log.directory) if name.endswith((".cleaned", ".swap"))]
    assert [offset for offset, _ in keys_of(log) if offset >= 8] == list(range(8, 20))
    assert await clean_all(broker) == 1


async def test_topic_deleted_meanwhile(broker: Broker, tmp_path: Path) -> None:
    """A topic that goes while it is cleaned takes its checkpoint along."""
    log = fill(broker)
    await clean_all(broker)
    fill(broker, 60)
    dirty = await broker.cleaner.choose()
    assert dirty is not None

    class Overtaken(CleanerProcess):
        async def _line(self, process: trio.Process) -> bytes:
            line = await super()._line(process)
            await broker.decide(lambda image: Plan([RemoveTopicRecord(topic_id=TOPIC_ID)], None))
            return line

    async with Overtaken() as process:
        assert not await broker.cleaner.clean(dirty, process)
    assert log.is_closed
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n0\n"


async def test_process_that_dies(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """A log at which the process dies is left alone, and told."""
    fill(broker)
    dirty = await broker.cleaner.choose()
    assert dirty is not None

    class Dying(CleanerProcess):
        async def _line(self, process: trio.Process) -> bytes:
            process.kill()
            return await super()._line(process)

    async with Dying() as process:
        assert not await broker.cleaner.clean(dirty, process)
    assert "the process that cleans died" in caplog.text
    assert await broker.cleaner.choose() is None


async def test_the_process_is_kept_for_the_next_job(broker: Broker) -> None:
    """It serves job after job; one that is broken off takes the process with it, and the next gets another."""

    async def clean(process: CleanerProcess) -> trio.Process | None:
        fill(broker)
        dirty = await broker.cleaner.choose()
        assert dirty is not None
        assert await broker.cleaner.clean(dirty, process)
        return process._process

    async with CleanerProcess() as process:
        first = await clean(process)
        assert first is not None
        assert await clean(process) is first
        fill(broker)
        dirty = await broker.cleaner.choose()
        assert dirty is not None
        with trio.move_on_after(0):
            await broker.cleaner.clean(dirty, process)
        assert process._process is None
        assert first.returncode is not None
        assert await clean(process) not in (None, first)


async def test_bug_in_the_cleaner(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told with its traceback, the log is left alone, and the workers go on."""
    log = fill(broker)

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(broker.cleaner, "_resources", fails)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.cleaner.run)
        with trio.fail_after(60):
            while "ZeroDivisionError" not in caplog.text:
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert await broker.cleaner.choose() is None
    assert log.cleaner_checkpoint is None


async def test_process_ends_with_the_broker() -> None:
    """The end of its input ends it at once, so that two never clean one directory."""
    process = await trio.lowlevel.open_process(command(), stdin=subprocess.PIPE)
    assert process.stdin is not None
    await process.stdin.aclose()
    with trio.fail_after(60):
        assert await process.wait() == 0
