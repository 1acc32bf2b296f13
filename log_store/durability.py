"""What makes a log durable, and what a disk that refuses does to it.

A flush syncs the segments from the recovery point on, the small files that were written since, and the
directory if names in it have changed. One flush of a log runs at a time, perhaps in a worker thread while the
log goes on in the event loop: the list of segments is taken once (deletions put another list in its place),
files are synced by name or by a descriptor that stays open as long as it is held, and what was deleted
meanwhile is no failure.

After a failed fsync the kernel may take the lost pages for clean, and the next fsync succeeds without them.
So a log whose disk has failed once stays failed: nothing is written to it, nothing of it is promised, and
its log directory goes offline until the broker is started again. Want of descriptors or memory is no fault of
the disk and passes.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ottla.log_store.files import fsync_path, storage_error
from ottla.log_store.segment import base_offset_of
from ottla.log_store.validation import FOREVER_MS
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.log_store.log import Log

_NOT_THE_DISK = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


OUT_OF_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE)


def has_flush_policy(log: Log) -> bool:
    """Whether an append may have to wait for a flush before it is acknowledged."""
    return log.flush_messages != FOREVER_MS


def flush(log: Log) -> None:
    """Make everything up to the present end durable, and move the recovery point there."""
    end_offset = log.log_end_offset
    with log.flushing, failing(log, "flush"):
        if log.is_closed:
            return
        check_usable(log)
        recovery_point, truncations = log.recovery_point, log.truncations
        if end_offset <= recovery_point:
            return
        held = log.segments
        first = max(0, bisect_right(held, recovery_point, key=base_offset_of) - 1)
        names_changed, log.names_changed = log.names_changed, False
        files, log.unflushed_files = log.unflushed_files, []
        try:
            for segment in held[first:]:
                segment.flush()
            for path in files:
                fsync_path(log.fs, path)
            if log.leader_epochs.flush() or files or names_changed:
                fsync_path(log.fs, log.directory)
        except OSError:
            log.unflushed_files += files
            log.names_changed = log.names_changed or names_changed
            raise
        if end_offset > log.recovery_point and truncations == log.truncations:
            log.recovery_point = end_offset


@contextmanager
def failing(log: Log, doing: str) -> Iterator[None]:
    """Turn what the disk refuses into the failure of the log."""
    try:
        yield
    except OSError as error:
        raise failed(log, doing, error) from error


def failed(log: Log, doing: str, error: OSError) -> KafkaError:
    """Note that the disk has failed the log, once for all, and return what clients are told. What the process
    itself lacked is told too, but not noted."""
    if log.is_closed:  # deleted, or taken offline, by somebody else meanwhile
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} is not in use any more.")
    result = storage_error(log.name, doing, error)
    if error.errno not in _NOT_THE_DISK:
        log.failure = error
        log.on_failure(error)
    return result


def check_usable(log: Log) -> None:
    """KAFKA_STORAGE_ERROR if the disk has failed the log before."""
    if log.failure is not None:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} is offline after a disk error: {log.failure}."
        )
