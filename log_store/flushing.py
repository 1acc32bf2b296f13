"""Making a log durable, perhaps in a worker thread while the log goes on in the event loop.

Nothing is locked: the list of segments is taken once (deletions put another list in its place), files are
flushed by name or by a descriptor that stays open as long as it is held, and what was deleted meanwhile is no
failure.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from ottla.log_store.files import fsync_path, storage_error
from ottla.log_store.segment import Segment, base_offset_of

if TYPE_CHECKING:
    from ottla.log_store.log import Log


def flush(log: Log) -> None:
    """fsync everything from the recovery point to the present end, and move the recovery point there."""
    end_offset = log.log_end_offset
    recovery_point = log.recovery_point
    if end_offset <= recovery_point:
        return
    held = log.segments
    segments = held[max(0, bisect_right(held, recovery_point, key=base_offset_of) - 1) :]
    files, log.unflushed_files = log.unflushed_files, []
    try:
        for segment in segments:
            _flush_segment(log, segment)
        for path in files:
            fsync_path(log.fs, path)
        log.leader_epochs.flush()
        if files or segments[-1].base_offset >= recovery_point:
            fsync_path(log.fs, log.directory)
    except OSError as error:
        if log.is_closed:  # deleted meanwhile
            return
        log.unflushed_files += files
        raise storage_error(log.name, "flush", error) from error
    if end_offset > log.recovery_point:
        log.recovery_point = min(end_offset, log.log_end_offset)


def _flush_segment(log: Log, segment: Segment) -> None:
    try:
        segment.flush()
    except OSError:
        if segment in log.segments:
            raise
