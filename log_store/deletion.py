"""Taking records away from a log: whole segments at its beginning, and everything after an offset at its end.

Segments go at once from the log and from the directory listing (renamed to `.deleted`); their files are
removed by `purge_deleted_files` after file.delete.delay.ms, and readers that hold a slice of them read on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.log_store.files import unlink_if_there
from ottla.log_store.producer_replay import rebuild_producers
from ottla.log_store.retention import SegmentFacts, segments_before_log_start, segments_past_retention
from ottla.wire.dataclass import dataclass
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.log_store.log import Log
    from ottla.log_store.segment import Segment

logger = logging.getLogger("ottla.log_store")

HIGH_WATERMARK: Final = -1  # as the offset of a DeleteRecords request: everything consumers may see
SEGMENTS_AT_ONCE: Final = 10  # have their files renamed in a millisecond or two


@dataclass(slots=True)
class DeletedFile:
    """A file that has left the log and is removed later. Its time runs from the first purge that sees it, so
    that whoever deletes needs no clock."""

    path: str
    delay_ms: int = 0
    due_ms: int | None = None

    def is_due(self, now_ms: int | None) -> bool:
        if now_ms is None:
            return True
        if self.due_ms is None:
            self.due_ms = now_ms + self.delay_ms
        return self.due_ms <= now_ms


def delete_records_before(log: Log, offset: int) -> int:
    """Move the log start to `offset` and delete the segments that lie before, SEGMENTS_AT_ONCE at most: `slot_of` tells
    whether there are more, which go when it is called again. Returns the log start."""
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0 or offset > log.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Cannot delete up to {offset}: the high watermark of {log.name} is {log.high_watermark}.",
        )
    _advance_log_start(log, offset)
    _delete_first(log, min(log.slot_of(log.log_start_offset), SEGMENTS_AT_ONCE))
    return log.log_start_offset


def delete_old_segments(log: Log, now_ms: int) -> int:
    """Delete what retention and the log start allow, but no more than SEGMENTS_AT_ONCE; returns how many segments that
    were."""
    facts = segment_facts(log)
    count = segments_before_log_start(facts, log.log_start_offset)
    config = log.config
    if config.deletes_old_segments:
        past_retention = segments_past_retention(
            facts,
            now_ms=now_ms,
            retention_ms=config.retention_ms,
            retention_bytes=config.retention_bytes,
            high_watermark=log.high_watermark,
            log_end_offset=log.log_end_offset,
        )
        count = max(count, past_retention)
    count = min(count, SEGMENTS_AT_ONCE)
    if count == len(log.segments):
        log.roll(now_ms)
    _delete_first(log, count)
    return count


def truncate_to(log: Log, offset: int, now_ms: int) -> bool:
    """Remove everything from `offset` on; False if the log ends before."""
    if offset < 0:
        raise ValueError(f"truncation to {offset}")
    if offset >= log.log_end_offset:
        return False
    if offset < log.segments[0].base_offset:
        log.start_at(offset, now_ms)
        return True
    log.truncations += 1
    keep = log.slot_of(offset) + 1
    removed = log.segments[keep:]
    log.segments = log.segments[:keep]
    log.remove_segments(removed)
    active = log.segments[-1]
    offset = active.truncate_to(offset)
    log.configure(active)
    log.log_end_offset = offset
    log.recovery_point = min(log.recovery_point, offset)
    log.log_start_offset = min(log.log_start_offset, offset)
    log.high_watermark = min(log.high_watermark, offset)
    if log.cleaner_checkpoint is not None:
        log.cleaner_checkpoint = min(log.cleaner_checkpoint, offset)
    log.leader_epochs.truncate_from_end(offset)
    rebuild_producers(log, now_ms)
    return True


def remove_segments(log: Log, segments: list[Segment]) -> None:
    """Rename the files of segments that have left the log, and note them for removal."""
    delay_ms = log.config.file_delete_delay_ms
    for segment in list(segments):
        paths = segment.mark_deleted()
        snapshot = log.producers.mark_snapshot_deleted(segment.base_offset)
        if snapshot is not None:
            paths.append(snapshot)
        log.deleted_files += [DeletedFile(path, delay_ms) for path in paths]
        log.names_changed = True


def purge_deleted_files(log: Log, now_ms: int | None) -> int:
    """Remove the deleted files that are due, or all of them without `now_ms`; returns how many."""
    removed = 0
    for file in list(log.deleted_files):
        if file.is_due(now_ms):
            removed += unlink_if_there(log.fs, file.path)
            log.deleted_files.remove(file)
    return removed


def segment_facts(log: Log) -> list[SegmentFacts]:
    """What choices over the segments of a log go by."""
    return [
        SegmentFacts(segment.base_offset, segment.size, segment.largest_timestamp) for segment in log.segments
    ]


def _delete_first(log: Log, count: int) -> None:
    if not count:
        return
    removed = log.segments[:count]
    log.segments = log.segments[count:]
    _advance_log_start(log, log.segments[0].base_offset)
    log.remove_segments(removed)
    logger.info(
        "segments deleted partition=%s count=%d log_start_offset=%d", log.name, count, log.log_start_offset
    )


def _advance_log_start(log: Log, offset: int) -> None:
    if offset > log.log_start_offset:
        log.log_start_offset = offset
        log.high_watermark = max(log.high_watermark, offset)
        log.recovery_point = max(log.recovery_point, offset)
        log.leader_epochs.truncate_from_start(offset)
        log.producers.advance_log_start(offset)
