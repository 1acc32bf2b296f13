"""Taking records away from a log: whole segments at its beginning, and everything after an offset at its end.

Segments go at once from the log and from the directory listing (renamed to `.deleted`); their files are
removed by `Log.purge_deleted_files`, and readers that hold a slice of them read on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.log_store.retention import SegmentFacts, segments_before_log_start, segments_past_retention
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.log_store.log import Log

logger = logging.getLogger("ottla.log_store")

HIGH_WATERMARK: Final = -1  # as the offset of a DeleteRecords request: everything consumers may see


def delete_records_before(log: Log, offset: int) -> int:
    """Move the log start to `offset` and delete the segments that lie before; returns the log start."""
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0 or offset > log.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Cannot delete up to {offset}: the high watermark of {log.name} is {log.high_watermark}.",
        )
    _advance_log_start(log, offset)
    _delete_first(log, segments_before_log_start(_facts(log), log.log_start_offset))
    return log.log_start_offset


def delete_old_segments(log: Log, now_ms: int) -> int:
    """Delete what retention and the log start allow; returns how many segments that were."""
    facts = _facts(log)
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
    log.leader_epochs.truncate_from_end(offset)
    log.rebuild_producers(now_ms)
    return True


def _facts(log: Log) -> list[SegmentFacts]:
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
