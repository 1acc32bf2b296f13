"""Finding records by time: the time index says where to begin, the batch headers which batch, and only that
batch is opened to find the record in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.log_store.segment import Segment
from ottla.wire.records.records import iter_positions


class TimestampOffset(NamedTuple):
    """A record that was looked for; leader_epoch is -1 if its batch tells none."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: Sequence[Segment], timestamp: int, log_start_offset: int
) -> TimestampOffset | None:
    """The first record from the log start on whose timestamp is at or after `timestamp`."""
    for segment in segments:
        if segment.size and segment.greatest_timestamp.timestamp >= timestamp:
            found = _first_in_segment(segment, timestamp, log_start_offset)
            if found is not None:
                return found
    return None


def greatest(segments: Sequence[Segment], log_start_offset: int) -> TimestampOffset | None:
    """The first record that has the greatest timestamp of the log."""
    newest: Segment | None = None
    for segment in segments:
        if segment.size and (newest is None or segment.greatest_timestamp[0] > newest.greatest_timestamp[0]):
            newest = segment
    if newest is None or newest.greatest_timestamp.timestamp < 0:
        return None
    timestamp, offset = newest.greatest_timestamp
    position = newest.offset_index.lookup(offset)[1]
    for _, view in newest.read_batches(position):
        if view.max_timestamp == timestamp:
            for found_offset, found_timestamp in iter_positions(view):
                if found_timestamp == timestamp:
                    return TimestampOffset(timestamp, found_offset, view.partition_leader_epoch)
    return None


def _first_in_segment(segment: Segment, timestamp: int, log_start_offset: int) -> TimestampOffset | None:
    begin = segment.time_index.lookup(timestamp).offset
    position = segment.offset_index.lookup(max(begin, log_start_offset))[1]
    for _, view in segment.read_batches(position):
        if view.max_timestamp < timestamp or view.last_offset < log_start_offset:
            continue
        for found_offset, found_timestamp in iter_positions(view):
            if found_timestamp >= timestamp and found_offset >= log_start_offset:
                return TimestampOffset(found_timestamp, found_offset, view.partition_leader_epoch)
    return None
