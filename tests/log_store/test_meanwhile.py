"""What happens to a log while a search, a flush or a deletion of it is under way, and what a restart may forget."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.checkpoints import LOG_START_OFFSET_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, read_offsets
from ottla.log_store.directory import LogDirectory
from ottla.log_store.files import OsFileSystem
from ottla.log_store.log import Log
from ottla.wire.records.header import patch_timestamp
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch, new_log, producer_batch, reopen


class Interrupted(OsFileSystem):
    """A disk on which something else happens just after a rename or before an fsync, as from another thread."""

    def __init__(self) -> None:
        self.after_rename: Callable[[], None] | None = None
        self.before_fsync: Callable[[], None] | None = None

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)
        happening, self.after_rename = self.after_rename, None
        if happening is not None:
            happening()

    def fsync(self, fd: int) -> None:
        happening, self.before_fsync = self.before_fsync, None
        if happening is not None:
            happening()
        os.fsync(fd)


def log_with_segments(tmp_path: Path, count: int, **config: Any) -> Log:
    """Segments of two batches each, whose headers promise a time that no record has."""
    log = new_log(tmp_path, **config)
    for number in range(2 * count):
        append(log, batch(b"v" * 50))
        if number % 2 and number + 1 < 2 * count:
            log.roll(NOW_MS)
    for segment in log.segments:
        for position, view in segment.read_batches(0):
            data = bytearray(view.data)
            patch_timestamp(data, 0, 0, NOW_MS + 1000)
            os.pwrite(segment.file.fd, data, position)
        segment._greatest = segment.time_index.last_entry._replace(timestamp=NOW_MS + 1000)
    return log


def test_segments_are_deleted_during_a_search_by_time(tmp_path: Path) -> None:
    """The search goes on behind them, and does not take their closed files for a disk that fails."""
    log = log_with_segments(tmp_path, 4, retention_ms=1)
    searches = log.steps_by_time(NOW_MS + 500)
    first = next(searches)
    assert first.run() is None
    assert log.delete_records_before(6) == 6
    names = sorted(os.listdir(log.directory))
    assert [search.view.base_offset for search in searches] == [6, 7]
    assert log.failure is None
    assert sorted(os.listdir(log.directory)) == names


def test_a_repeated_batch_waits_for_the_flush_of_the_first(tmp_path: Path) -> None:
    """Where flush.messages asks for a flush before an answer, the answer to a repetition asks for it as well."""
    log = new_log(tmp_path, flush_messages=1)
    for is_repeated in (False, True):
        result = log.append(producer_batch(sequence=0), leader_epoch=0, now_ms=NOW_MS)
        assert (result.base_offset, result.duplicate, result.flush_due) == (0, is_repeated, True)
    log.flush()
    result = log.append(producer_batch(sequence=0), leader_epoch=0, now_ms=NOW_MS)
    assert (result.duplicate, result.flush_due) == (True, False)


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_does_not_make_segments_younger(tmp_path: Path, clean: bool) -> None:
    """Records without a time are as old as their file, which neither stopping nor recovery may touch."""
    log = new_log(tmp_path, retention_ms=1000)
    append(log, batch(b"old", timestamps=[-1]))
    log.roll(NOW_MS)
    append(log, batch(b"new"))
    log.flush()
    old_file = log.segments[0].file.path
    os.utime(old_file, (1000, 1000))
    if clean:
        log.close()
    else:
        log.release()
    log = reopen(log, clean=clean, recovery_point=0)
    assert log.segments[0].largest_timestamp == 1_000_000
    assert log.delete_old_segments(NOW_MS) == 1
    assert log.log_start_offset == 1


def test_the_log_start_is_known_before_the_recovery_point(tmp_path: Path) -> None:
    """What was deleted was perhaps never on the disk. A recovery point that follows the log start must not be read
    without it, lest the log seem to have lost what was deleted."""
    directory = LogDirectory(tmp_path)
    log = directory.create_log("orders", 0, TOPIC_ID, TopicConfig(), now_ms=NOW_MS)
    append(log, batch(b"a", b"b", b"c"))
    log.delete_records_before(2)
    directory.write_recovery_points()
    assert read_offsets(str(tmp_path / RECOVERY_POINT_CHECKPOINT)) == {("orders", 0): 2}
    assert read_offsets(str(tmp_path / LOG_START_OFFSET_CHECKPOINT)) == {("orders", 0): 2}
    path = log.segments[0].file.path
    directory.release()
    os.truncate(path, 0)  # the machine went down before its pages were written

    directory = LogDirectory(tmp_path)
    [log] = directory.open_logs(lambda topic: TopicConfig(), now_ms=NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, directory.failed) == (2, 2, {})
    directory.release()


def test_a_flush_meets_a_deletion(tmp_path: Path) -> None:
    """A partition whose directory was just renamed has lost its files, but the disk has not failed."""
    fs = Interrupted()
    directory = LogDirectory(tmp_path, fs=fs)
    log = directory.create_log("orders", 0, TOPIC_ID, TopicConfig(), now_ms=NOW_MS)
    append(log, batch(b"a"))
    log.leader_epochs.begin(5, 1)  # a flush will write it down
    fs.after_rename = log.flush
    directory.delete_log(log)
    assert (directory.failure, directory.logs) == (None, {})
    directory.close()


def test_a_flush_meets_a_truncation(tmp_path: Path) -> None:
    """What replaces the end of a log during a flush is not taken for flushed."""
    fs = Interrupted()
    log = Log.create(tmp_path / "orders-0", TOPIC_ID, TopicConfig(), now_ms=NOW_MS, fs=fs)
    for value in (b"a", b"b", b"c"):
        append(log, batch(value))

    def replace_the_end() -> None:
        log.truncate_to(1, NOW_MS)
        append(log, batch(b"other"))

    fs.before_fsync = replace_the_end
    log.flush()
    assert (log.recovery_point, log.log_end_offset) == (0, 2)
    log.flush()
    assert log.recovery_point == 2
