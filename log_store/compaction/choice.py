"""Which logs are dirty enough to be cleaned, and how far: pure choices over facts.

    log start          first dirty offset            first uncleanable offset        end
        |  clean            |  cleanable                     |  uncleanable           |

Clean is what an earlier round went over, as cleaner-offset-checkpoint says. Uncleanable is the active segment, what
lies at or after the last stable offset, what is not on the disk yet for sure (from the recovery point on), and
everything from the first segment that has a record younger than min.compaction.lag.ms. Only whole segments are
cleaned. A log is taken up when the cleanable share of the clean and cleanable bytes exceeds
min.cleanable.dirty.ratio, or when a dirty segment is older than max.compaction.lag.ms (KIP-354).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.log_store.retention import SegmentFacts


class OffsetsToClean(NamedTuple):
    """Where cleaning begins and ends. If `checkpoint_was_wrong`, the checkpoint must be set to the beginning."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    checkpoint_was_wrong: bool


class Dirtiness(NamedTuple):
    """How much there is to clean."""

    cleanable_bytes: int
    total_bytes: int  # without what is uncleanable

    @property
    def ratio(self) -> float:
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0


def offsets_to_clean(
    segments: Sequence[SegmentFacts],
    *,
    checkpoint: int | None,
    log_start_offset: int,
    log_end_offset: int,
    stable_offset: int,
    min_compaction_lag_ms: int,
    now_ms: int,
) -> OffsetsToClean:
    """The range that may be cleaned; `segments` is the whole log, the last one being active. `stable_offset` is the
    last stable offset or the recovery point, whichever is less."""
    first_dirty = log_start_offset if checkpoint is None else checkpoint
    is_wrong = not log_start_offset <= first_dirty <= log_end_offset
    if is_wrong:
        first_dirty = log_start_offset
    uncleanable = segments[-1].base_offset
    for index, segment in enumerate(segments[:-1]):
        next_base = segments[index + 1].base_offset
        if next_base > stable_offset or (
            min_compaction_lag_ms > 0
            and next_base > first_dirty
            and segment.largest_timestamp > now_ms - min_compaction_lag_ms
        ):
            uncleanable = segment.base_offset
            break
    return OffsetsToClean(first_dirty, max(first_dirty, uncleanable), is_wrong)


def dirtiness(segments: Sequence[SegmentFacts], offsets: OffsetsToClean) -> Dirtiness:
    """Clean and cleanable bytes; a segment that is partly dirty counts on both sides."""
    clean = cleanable = 0
    for index, segment in enumerate(segments[:-1]):
        next_base = segments[index + 1].base_offset
        if segment.base_offset < offsets.first_dirty_offset:
            clean += segment.size_bytes
        if next_base > offsets.first_dirty_offset and next_base <= offsets.first_uncleanable_offset:
            cleanable += segment.size_bytes
    return Dirtiness(cleanable, clean + cleanable)


def is_overdue(
    segments: Sequence[SegmentFacts],
    first_dirty_offset: int,
    *,
    first_timestamp_of: Callable[[int], int],
    max_compaction_lag_ms: int,
    now_ms: int,
) -> bool:
    """Whether a dirty segment that is not active begins before what max.compaction.lag.ms allows.
    `first_timestamp_of` tells the timestamp of the first batch of the segment in a slot."""
    clean_until_ms = now_ms - max_compaction_lag_ms
    if clean_until_ms <= 0:
        return False
    return any(
        0 < first_timestamp_of(slot) < clean_until_ms
        for slot in range(len(segments) - 1)
        if segments[slot + 1].base_offset > first_dirty_offset
    )


def group_segments(
    segments: Sequence[SegmentFacts],
    index_bytes: Sequence[int],
    end_offset: int,
    *,
    max_bytes: int,
    max_index_bytes: int,
) -> list[list[SegmentFacts]]:
    """Put neighbours together that make one segment of at most `max_bytes`, so that segments do not become small.
    `index_bytes` has the length of the larger index of each segment."""
    groups: list[list[SegmentFacts]] = []
    log_bytes = indexes = 0
    for slot, segment in enumerate(segments):
        last_offset = (segments[slot + 1].base_offset if slot + 1 < len(segments) else end_offset) - 1
        if (
            groups
            and log_bytes + segment.size_bytes <= max_bytes
            and indexes + index_bytes[slot] <= max_index_bytes
            and (segment.size_bytes == 0 or last_offset - groups[-1][0].base_offset <= 0x7FFFFFFF)
        ):
            groups[-1].append(segment)
            log_bytes += segment.size_bytes
            indexes += index_bytes[slot]
        else:
            groups.append([segment])
            log_bytes, indexes = segment.size_bytes, index_bytes[slot]
    return groups
