"""Finding records by time: the time index says where to begin, the batch headers which batch, and only that
batch is opened to find the record in it.

A look-up is a series of searches, each of one batch, to be run in turn until one finds something; nearly
always that is the first. A search has its batch in memory and may run in a worker thread while the log goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ottla.log_store.segment import Segment
from ottla.wire.records.header import BatchView
from ottla.wire.records.records import iter_positions


class TimestampOffset(NamedTuple):
    """A record that was looked for; leader_epoch is -1 if its batch tells none."""

    timestamp: int
    offset: int
    leader_epoch: int


class BatchSearch(NamedTuple):
    """Looks in one batch for the first record at or after a time and an offset, or with the greatest time (None)."""

    view: BatchView
    timestamp: int | None
    first_offset: int

    def run(self) -> TimestampOffset | None:
        if self.timestamp is None:
            return self._greatest()
        for offset, timestamp in iter_positions(self.view):
            if timestamp >= self.timestamp and offset >= self.first_offset:
                return TimestampOffset(timestamp, offset, self.view.partition_leader_epoch)
        return None

    def _greatest(self) -> TimestampOffset | None:
        found: TimestampOffset | None = None
        for offset, timestamp in iter_positions(self.view):
            if found is None or timestamp > found.timestamp:
                found = TimestampOffset(timestamp, offset, self.view.partition_leader_epoch)
                if timestamp >= self.view.max_timestamp:  # the header may promise more than there is
                    break
        return found


def first_found(searches: Iterable[BatchSearch]) -> TimestampOffset | None:
    """What the first search that finds something has found."""
    return next((found for search in searches if (found := search.run()) is not None), None)


def at_or_after(
    segments: Sequence[Segment], timestamp: int, log_start_offset: int, only_cached: bool
) -> Iterator[BatchSearch]:
    """For the first record from the log start on whose timestamp is at or after `timestamp`."""
    for segment in segments:
        if segment.file.fd < 0:  # deleted while batches before it were searched
            continue
        if not segment.size or segment.greatest_timestamp.timestamp < timestamp:
            continue
        if only_cached:
            segment.time_index.be_in_memory()
            segment.offset_index.be_in_memory()
        begin = segment.time_index.lookup(timestamp).offset
        position = segment.offset_index.lookup(max(begin, log_start_offset))[1]
        for _, view in segment.read_batches(position, only_cached=only_cached):
            if view.max_timestamp >= timestamp and view.last_offset >= log_start_offset:
                yield BatchSearch(view, timestamp, log_start_offset)
                if segment.file.fd < 0:  # deleted while the batch was searched
                    break


def greatest(segments: Sequence[Segment], only_cached: bool) -> Iterator[BatchSearch]:
    """For the first record that has the greatest timestamp of the log, which is -1 if no record has one."""
    newest: Segment | None = None
    for segment in segments:
        if segment.size and (newest is None or segment.greatest_timestamp[0] > newest.greatest_timestamp[0]):
            newest = segment
    if newest is None:
        return
    timestamp, offset = newest.greatest_timestamp
    if only_cached:
        newest.offset_index.be_in_memory()
    position = newest.offset_index.lookup(offset)[1]
    for _, view in newest.read_batches(position, only_cached=only_cached):
        if view.max_timestamp == timestamp:
            yield BatchSearch(view, None, 0)
            return
