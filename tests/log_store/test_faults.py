"""A disk that fails: nothing is written by halves, and the log takes and promises nothing any more."""

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.files import Buffer, OsFileSystem
from ottla.log_store.log import Log
from ottla.log_store.txn_index import AbortedTxn
from ottla.log_store.validation import AppendOrigin
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.control import ControlType, build_end_txn_marker
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch, producer_batch, reopen, values_from


class FaultyDisk(OsFileSystem):
    """Takes `room` more bytes, in writes of at most `stride`, then it is full."""

    def __init__(self) -> None:
        self.room = 1 << 40
        self.stride = 1 << 40
        self.fails_fsync = False
        self.fails_pread = False

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

        def pread(fd: int, length: int, offset: int) -> bytes:
            if self.fails_pread:
                raise OSError(errno.EIO, "Input/output error")
            return os.pread(fd, length, offset)

        self.pwrite: Any = pwrite
        self.pread: Any = pread
        self.fsync: Any = fsync


def log_on(disk: FaultyDisk, directory: Path, **config: Any) -> Log:
    directory.mkdir(exist_ok=True)
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
    """Wherever the disk becomes full, the batch is refused and its bytes are cut off; the log stays refused,
    even if there is room again, until it is opened anew."""
    for room in range(len(batch(b"second"))):
        disk = FaultyDisk()
        log = log_on(disk, tmp_path / str(room))
        append(log, batch(b"first"))
        size = log.size_bytes
        disk.room = room
        for _ in range(2):
            with pytest.raises(KafkaError) as refused:
                append(log, batch(b"second"))
            assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
            disk.room = 1 << 40
        assert os.stat(log.path_of(f"{0:020d}.log")).st_size == log.size_bytes == size
        log.release()
        log = reopen(log, clean=False)
        assert append(log, batch(b"second")) == 1
        assert values_from(log, 0) == [(0, b"first"), (1, b"second")]


def test_full_disk_while_rolling(tmp_path: Path) -> None:
    """Whatever write of a roll fails, the log opened anew has everything acknowledged, once."""
    refused = 0
    for room in range(0, 250, 3):
        disk = FaultyDisk()
        log = log_on(disk, tmp_path / str(room), internal_segment_bytes=200, index_interval_bytes=0)
        appended = []
        disk.room = room + 500
        with contextlib.suppress(KafkaError):
            for number in range(20):
                append(log, batch(b"%d" % number))
                appended.append((number, b"%d" % number))
        assert log.failure is not None
        refused += 1
        log.release()
        log = reopen(log, clean=False, recovery_point=0)
        assert values_from(log, 0) == appended
        append(log, batch(b"and on"))
        assert values_from(log, 0) == [*appended, (len(appended), b"and on")]
    assert refused > 20


def test_failed_fsync_is_final(tmp_path: Path) -> None:
    """An fsync that fails is not tried again: the kernel may have dropped the pages and call the next one a
    success. Nothing is promised any more, and the log directory hears of it."""
    disk = FaultyDisk()
    log = log_on(disk, tmp_path)
    failures: list[OSError] = []
    log.on_failure = failures.append
    append(log, batch(b"a"))
    disk.fails_fsync = True
    with pytest.raises(KafkaError) as refused:
        log.flush()
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [failure.errno for failure in failures] == [errno.EIO]
    disk.fails_fsync = False
    with pytest.raises(KafkaError):
        log.flush()
    assert log.recovery_point == 0
    with pytest.raises(KafkaError):
        append(log, batch(b"b"))


def test_failing_reads(tmp_path: Path) -> None:
    """A disk that cannot read fails the log; nothing wrong is served."""
    disk = FaultyDisk()
    log = log_on(disk, tmp_path, internal_segment_bytes=300)
    for number in range(10):
        append(log, batch(b"%d" % number))
    disk.fails_pread = True
    with pytest.raises(KafkaError) as refused:
        log.read(0, 1000, upto=10, at_least_one=True)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.failure is not None
    disk.fails_pread = False
    with pytest.raises(KafkaError):
        log.read(0, 1000, upto=10, at_least_one=True)


def test_flushing_a_deleted_segment(tmp_path: Path) -> None:
    """A segment that retention takes while it waits for its flush is no disk error."""
    log = log_on(FaultyDisk(), tmp_path, internal_segment_bytes=300)
    for number in range(10):
        append(log, batch(b"%d" % number))
    stale = list(log.segments)
    log.delete_records_before(9)
    for segment in stale:
        segment.flush()
    assert log.failure is None


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


def test_want_of_descriptors_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    """A read that cannot open its index is refused, and the log is as good as before."""
    disk = FaultyDisk()
    log = log_on(disk, tmp_path, index_interval_bytes=0)
    for _ in range(3):
        append(log, batch(b"a" * 100))
    log.roll(NOW_MS)
    really_open = disk.open

    def refuse(*_: Any) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    disk.open = refuse
    with pytest.raises(KafkaError) as refusal:
        log.read(1, 1000, upto=3, at_least_one=True)
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.open = really_open
    assert values_from(log, 2) == [(2, b"a" * 100)]


def test_want_of_descriptors_passes(tmp_path: Path) -> None:
    """A process with too many open files has a storage error now, and not for good: the disk is well."""
    disk = FaultyDisk()
    log = log_on(disk, tmp_path, internal_segment_bytes=300, index_interval_bytes=0)
    really_open = os.open
    for number in range(12):
        for attempt in range(5):
            left = [attempt]

            def open_few(path: str, flags: int, mode: int = 0o777, left: list[int] = left) -> int:
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(errno.EMFILE, "Too many open files")
                return really_open(path, flags, mode)

            disk.open = open_few
            with contextlib.suppress(KafkaError):
                append(log, batch(b"%d" % number), epoch=number // 4)
            with contextlib.suppress(KafkaError):
                log.flush()
            if log.log_end_offset > number:
                break
        disk.open = really_open
        if log.log_end_offset == number:
            append(log, batch(b"%d" % number), epoch=number // 4)
    assert log.failure is None
    expected = [(number, b"%d" % number) for number in range(12)]
    assert values_from(log, 0) == expected
    log.flush()
    assert log.recovery_point == 12
    log.release()
    assert reopen(log, clean=True).leader_epochs.entries == [(0, 0), (1, 4), (2, 8)]
    assert values_from(reopen(log, clean=False), 0) == expected


def aborted_transaction(log: Log) -> None:
    """Append a record in a transaction and the marker that aborts it."""
    append(log, producer_batch(sequence=0, is_transactional=True))
    marker = build_end_txn_marker(
        ControlType.ABORT, timestamp=NOW_MS, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )
    append(log, memoryview(bytearray(marker)), origin=AppendOrigin.COORDINATOR)


def test_index_of_aborted_transactions_that_cannot_be_opened(tmp_path: Path) -> None:
    """No marker is written that readers would hear nothing of; the transaction stays open, and can be ended later."""
    disk = FaultyDisk()
    log = log_on(disk, tmp_path)
    opened = disk.open

    def open_file(path: str, flags: int, mode: int = 0o777) -> int:
        if path.endswith(".txnindex"):
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(path, flags, mode)

    disk.open = open_file  # type: ignore[method-assign]
    with pytest.raises(KafkaError) as refused:
        aborted_transaction(log)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.log_end_offset, log.last_stable_offset, log.failure) == (1, 0, None)
    disk.open = opened  # type: ignore[method-assign]
    aborted_transaction(log)
    assert log.segments[0].txn_index.entries == [AbortedTxn(7, 0, 1, 2)]


def test_index_of_aborted_transactions_on_a_full_disk(tmp_path: Path) -> None:
    """The log serves nothing more; opened anew it has the entry of a marker that was written, or neither."""
    seen = set()
    for room in range(0, 300, 5):
        disk = FaultyDisk()
        log = log_on(disk, tmp_path / str(room))
        disk.room = room
        with contextlib.suppress(KafkaError):
            aborted_transaction(log)
        if log.failure is None:
            break
        log.release()
        log = reopen(log, clean=False, high_watermark=1 << 40)
        entries = log.segments[0].txn_index.entries
        assert len(entries) == (log.log_end_offset == 2)
        assert log.last_stable_offset == (2 if entries else 0)
        seen.add(log.log_end_offset)
    assert seen == {0, 1, 2}
