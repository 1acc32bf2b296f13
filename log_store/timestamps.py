"""Finding records by time: the time index says where to begin, the batch headers which batch, and only that
batch is opened to find the record in it.

A look-up is a series of steps, mostly searches of one batch each, to be run in turn until one finds something; nearly
always that is the first. A search has its batch in memory and may run in a worker thread while the log goes on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ottla.log_store.offset_index import OffsetIndex
from ottla.log_store.page_cache import NotInMemory
from ottla.log_store.segment import Segment
from ottla.log_store.time_index import TimeIndex
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


# A search; or what has to be brought first, where only what is in memory is looked at; or None after each stretch of a
# long way, as where very many batches have the same time, for others to go on.
Step = BatchSearch | NotInMemory | None
# All of them, and in the end whether no segment was deleted or compacted meanwhile, as far as it was looked at.
Way = Generator[Step, None, bool]
_WALK_BYTES: Final = 256 * 1024
_TRIES: Final = 2  # to bring the head of a batch, and all of it; what does not stay in memory is waited for


def first_found(steps: Iterable[Step]) -> TimestampOffset | None:
    """What the first search that finds something has found."""
    for step in steps:
        if isinstance(step, BatchSearch) and (found := step.run()) is not None:
            return found
    return None


def at_or_after(segments: Sequence[Segment], timestamp: int, log_start_offset: int, only_cached: bool) -> Way:
    """For the first record from the log start on whose timestamp is at or after `timestamp`."""
    for segment in segments:
        if segment.file.fd < 0:
            return False
        if not segment.size or segment.greatest_timestamp.timestamp < timestamp:
            continue
        if only_cached:
            yield from _missing(segment.time_index)
            yield from _missing(segment.offset_index)
            if segment.file.fd < 0:
                return False
        begin = segment.time_index.lookup(timestamp).offset
        position = segment.offset_index.lookup(max(begin, log_start_offset))[1]
        for step in _batches(segment, position, only_cached):
            if not isinstance(step, BatchView):
                yield step
            elif step.max_timestamp >= timestamp and step.last_offset >= log_start_offset:
                yield BatchSearch(step, timestamp, log_start_offset)
            else:
                continue
            if segment.file.fd < 0:
                return False
    return True


def greatest(segments: Sequence[Segment], only_cached: bool) -> Way:
    """For the first record that has the greatest timestamp of the log, which is -1 if no record has one."""
    newest: Segment | None = None
    for segment in segments:
        if segment.size and (newest is None or segment.greatest_timestamp[0] > newest.greatest_timestamp[0]):
            newest = segment
    if newest is None:
        return True
    timestamp, offset = newest.greatest_timestamp
    if only_cached:
        yield from _missing(newest.offset_index)
        if newest.file.fd < 0:
            return False
    position = newest.offset_index.lookup(offset)[1]
    for step in _batches(newest, position, only_cached):
        if not isinstance(step, BatchView):
            yield step
            if newest.file.fd < 0:
                return False
        elif step.max_timestamp == timestamp:
            yield BatchSearch(step, None, 0)
            break
    return True


def _missing(index: OffsetIndex | TimeIndex) -> Iterator[NotInMemory]:
    try:
        index.be_in_memory()
    except NotInMemory as missing:
        step = missing
    else:
        return
    yield step


def _batches(segment: Segment, position: int, only_cached: bool) -> Iterator[BatchView | NotInMemory | None]:
    """The batches from `position` on, among the other steps of the way."""
    rested = position
    missed, tries = -1, 0
    while True:
        try:
            for at, view in segment.read_batches(position, only_cached=only_cached and tries < _TRIES):
                position = at + view.size_in_bytes
                yield view
                if position - rested >= _WALK_BYTES:
                    rested = position
                    yield None
            return
        except NotInMemory as missing:
            step = missing
        tries = tries + 1 if position == missed else 1
        missed = position
        yield step
