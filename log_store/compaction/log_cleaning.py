"""From a log to what is to be done with it: how dirty it is, and the job for the cleaner."""

from __future__ import annotations

import logging
from typing import NamedTuple

from ottla.log_store.compaction.choice import (
    Dirtiness,
    OffsetsToClean,
    dirtiness,
    is_overdue,
    offsets_to_clean,
)
from ottla.log_store.compaction.job import UNLIMITED, CleaningJob
from ottla.log_store.deletion import segment_facts
from ottla.log_store.log import Log

logger = logging.getLogger("ottla.log_store")


class CleaningResources(NamedTuple):
    """What one cleaner may use, from the broker's config."""

    key_map_bytes: int
    load_factor: float = 0.9
    buffer_bytes: int = 1 << 18
    max_bytes_per_second: float = UNLIMITED


class DirtyLog(NamedTuple):
    """A log that may be cleaned, and how much that would be."""

    log: Log
    offsets: OffsetsToClean
    dirtiness: Dirtiness
    is_overdue: bool

    @property
    def is_due(self) -> bool:
        """Whether it is dirty enough or has waited too long."""
        if self.is_overdue and self.dirtiness.cleanable_bytes > 0:
            return True
        return self.dirtiness.ratio > self.log.config.min_cleanable_dirty_ratio

    def job(self, now_ms: int, resources: CleaningResources) -> CleaningJob:
        """One round of cleaning."""
        log, config = self.log, self.log.config
        end = self.offsets.first_uncleanable_offset
        return CleaningJob(
            directory=log.directory,
            segments=[segment.base_offset for segment in log.segments if segment.base_offset < end],
            first_dirty_offset=self.offsets.first_dirty_offset,
            first_uncleanable_offset=end,
            producers={
                entry.producer_id: (entry.last_offset, entry.producer_epoch)
                for entry in log.producers.producers.values()
            },
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.max_segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            **resources._asdict(),
        )


def look_at(log: Log, now_ms: int) -> DirtyLog | None:
    """How dirty a compacted log is; None if nothing of it may be cleaned. Sets a checkpoint right that cannot be."""
    if log.is_closed or log.failure is not None or len(log.segments) < 2:
        return None
    config = log.config
    facts = segment_facts(log)
    offsets = offsets_to_clean(
        facts,
        checkpoint=log.cleaner_checkpoint,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        stable_offset=min(log.last_stable_offset, log.recovery_point),
        min_compaction_lag_ms=config.min_compaction_lag_ms,
        now_ms=now_ms,
    )
    if offsets.checkpoint_was_wrong:
        if not config.deletes_old_segments:  # there the log start passes it every now and then
            logger.warning(
                "cleaner checkpoint reset partition=%s checkpoint=%s log_start_offset=%d log_end_offset=%d",
                log.name,
                log.cleaner_checkpoint,
                log.log_start_offset,
                log.log_end_offset,
            )
        log.cleaner_checkpoint = offsets.first_dirty_offset
    amount = dirtiness(facts, offsets)
    if not amount.cleanable_bytes:
        return None
    overdue = is_overdue(
        facts,
        offsets.first_dirty_offset,
        first_timestamp_of=lambda slot: log.segments[slot].first_batch_timestamp,
        max_compaction_lag_ms=config.max_compaction_lag_ms,
        now_ms=now_ms,
    )
    return DirtyLog(log, offsets, amount, overdue)


def dirtiest(candidates: list[DirtyLog]) -> DirtyLog | None:
    """The log to clean next: of those that are due, the one with the greatest dirty share."""
    due = [each for each in candidates if each.is_due]
    return max(due, key=lambda each: each.dirtiness.ratio, default=None)
