"""A disk that fails: nothing is written by halves, and the log goes on when the disk does."""

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.files import Buffer, OsFileSystem
from ottla.log_store.log import Log
from ottla.wire.errors import ErrorCode, KafkaError
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch, reopen, values_from


class FaultyDisk(OsFileSystem):
    """Takes `room` more bytes, in writes of at most `stride`, then it is full."""

    def __init__(self) -> None:
        self.room = 1 << 40
        self.stride = 1 << 40
        self.fails_fsync = False

        def pwrite(fd: int, data: Buffer, offset: int) -> int:
            if self.room <= 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            length = min(self.stride, self.room, len(data))
            self.room -= length
            return os.pwrite(fd, memoryview(data)[:length], offset)

        def fsync(fd: int) -> None:
            if self.fails_fsync:
                raise OSError(errno.EIO, "Input/output error")
            os.fsync(fd)

        self.pwrite: Any = pwrite
        self.fsync: Any = fsync


def log_on(disk: FaultyDisk, directory: Path, **config: Any) -> Log:
    return Log.create(directory / "orders-0", TOPIC_ID, TopicConfig(**config), now_ms=NOW_MS, fs=disk)


def test_short_writes(tmp_path: Path) -> None:
    """A batch that is written in pieces is whole in the end."""
    disk = FaultyDisk()
    disk.stride = 7
    log = log_on(disk, tmp_path)
    append(log, batch(b"a" * 100))
    append(log, batch(b"b" * 100))
    assert values_from(log, 0) == [(0, b"a" * 100), (1, b"b" * 100)]


def test_full_disk_at_every_byte(tmp_path: Path) -> None:
    """Wherever the disk becomes full, the batch is refused, its bytes are cut off, and a retry succeeds."""
    disk = FaultyDisk()
    log = log_on(disk, tmp_path)
    append(log, batch(b"first"))
    size = log.size_bytes
    records = batch(b"second")
    for room in range(len(records)):
        disk.room = room
        with pytest.raises(KafkaError) as refused:
            append(log, batch(b"second"))
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert os.stat(log.path_of(f"{0:020d}.log")).st_size == log.size_bytes == size
        assert log.log_end_offset == 1
    disk.room = 1 << 40
    append(log, batch(b"second"))
    assert values_from(log, 0) == [(0, b"first"), (1, b"second")]


def test_full_disk_while_rolling(tmp_path: Path) -> None:
    """A roll that fails at any write is tried again by the next append; nothing is lost or doubled."""
    disk = FaultyDisk()
    log = log_on(disk, tmp_path, internal_segment_bytes=200, index_interval_bytes=0)
    appended = []
    refused = 0
    for number in range(40):
        value = b"%d" % number
        disk.room = number % 13 * 8
        with contextlib.suppress(KafkaError):
            append(log, batch(value))
        if log.log_end_offset == number:
            refused += 1
            disk.room = 1 << 40
            append(log, batch(value))
        appended.append((number, value))
        assert values_from(log, 0) == appended
    assert 0 < refused < 40
    disk.room = 1 << 40
    log.flush()
    log.release()
    log = reopen(log, clean=False, recovery_point=0)
    assert values_from(log, 0) == appended


def test_failed_flush_keeps_the_recovery_point(tmp_path: Path) -> None:
    """What could not be made durable is not taken for durable."""
    disk = FaultyDisk()
    log = log_on(disk, tmp_path)
    append(log, batch(b"a"))
    disk.fails_fsync = True
    with pytest.raises(KafkaError) as refused:
        log.flush()
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 0


def test_a_segment_deleted_during_a_flush_is_no_failure(tmp_path: Path) -> None:
    """Retention goes on in the event loop while a worker thread flushes."""
    disk = FaultyDisk()
    log = log_on(disk, tmp_path, max_message_bytes=1 << 20)
    for _ in range(3):
        append(log, batch(b"a"))
        log.roll(NOW_MS)
    really_fsync = disk.fsync

    def delete_then_fsync(fd: int) -> None:
        disk.fsync = really_fsync
        log.delete_records_before(3)
        really_fsync(fd)

    disk.fsync = delete_then_fsync
    log.flush()
    assert log.recovery_point == 3
