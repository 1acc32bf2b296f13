"""Which segments may go: pure choices over facts, from the oldest segment on.

Only whole segments are deleted, only below the high watermark, and never the last one while it is empty.
retention.ms looks at the newest record of a segment, retention.bytes at what would be left; -1 means no
limit. The first segment that must stay ends the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class SegmentFacts(NamedTuple):
    base_offset: int
    size_bytes: int
    largest_timestamp: int


def segments_past_retention(
    segments: Sequence[SegmentFacts],
    *,
    now_ms: int,
    retention_ms: int,
    retention_bytes: int,
    high_watermark: int,
    log_end_offset: int,
) -> int:
    """How many of the first segments are too old or too much."""
    excess = sum(segment.size_bytes for segment in segments) - retention_bytes if retention_bytes >= 0 else -1
    count = 0
    for segment in segments:
        is_last = count + 1 == len(segments)
        upper_bound = log_end_offset if is_last else segments[count + 1].base_offset
        if upper_bound > high_watermark or (is_last and not segment.size_bytes):
            break
        too_much = excess >= 0 and excess - segment.size_bytes >= 0
        too_old = 0 <= retention_ms < now_ms - segment.largest_timestamp
        if not (too_much or too_old):
            break
        excess -= segment.size_bytes
        count += 1
    return count


def segments_before_log_start(segments: Sequence[SegmentFacts], log_start_offset: int) -> int:
    """How many of the first segments hold nothing at or after the log start."""
    count = 0
    while count + 1 < len(segments) and segments[count + 1].base_offset <= log_start_offset:
        count += 1
    return count
