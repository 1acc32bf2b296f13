"""Acquiring: records that were read from the log are given to a member.

Whole batches are given, so that more records than asked for may come, unless the member insists on a limit (KIP-1206).
A batch that was delivered too often already is given alone and in ever smaller parts, its last time record by record,
so that one bad record does not take its neighbours with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from ottla.group_coordinator.share_partition.partition import SharePartition
from ottla.group_coordinator.share_partition.runs import InFlightBatch, RecordState, Run

_LEAST_THROTTLE_LIMIT = 2


class BatchRange(NamedTuple):
    """The offsets of a record batch in the log."""

    base_offset: int
    last_offset: int


class Acquisition(NamedTuple):
    """Who wants how much, and under which limits."""

    member_id: str
    max_records: int
    batch_size: int
    record_limit: bool
    locked_until_ms: int
    max_record_locks: int
    delivery_count_limit: int


def room_for(partition: SharePartition, wanted: Acquisition) -> tuple[int, int | None]:
    """How many records may be acquired, and the last offset of them if nothing new may be in flight."""
    free = min(wanted.max_records, wanted.max_record_locks - partition.in_flight_count)
    if free > 0:
        return free, None
    offset = partition.fetch_offset
    if wanted.max_records > 0 and offset < partition.next_offset:
        return min(wanted.max_records, partition.next_offset - offset), partition.next_offset - 1
    return 0, None


def acquire(partition: SharePartition, wanted: Acquisition, batches: Sequence[BatchRange]) -> list[Run]:
    """Give what the batches hold, which were read from the fetch offset on, as far as it may be given."""
    room, last_allowed = room_for(partition, wanted)
    if room <= 0 or not batches or batches[-1].last_offset < partition.start_offset:
        return []
    last = batches[-1].last_offset if last_allowed is None else min(batches[-1].last_offset, last_allowed)
    first = batches[0].base_offset
    _archive_missing(partition, first)
    acquired, throttled = _acquire_available(partition, wanted, BatchRange(first, last), room)
    room -= sum(map(len, acquired))
    if room > 0 and not throttled and partition.next_offset <= last:
        acquired += _acquire_new(partition, wanted, batches, last, room)
    return partition.join(acquired)


def _archive_missing(partition: SharePartition, first: int) -> None:
    """What was read begins here, so whatever is available in front of it is not in the log any more."""
    if partition.fetch_offset >= first:
        return
    for run in partition.cut(partition.start_offset, first - 1):
        if run.state is RecordState.AVAILABLE:
            run.become(RecordState.ARCHIVED)
    partition.settle()


def _acquire_available(
    partition: SharePartition, wanted: Acquisition, readable: BatchRange, room: int
) -> tuple[list[Run], bool]:
    """What was in flight before, batch by batch; and whether something bad keeps the rest waiting."""
    acquired: list[Run] = []
    count = 0
    throttle_limit = max(_LEAST_THROTTLE_LIMIT, -(-wanted.delivery_count_limit // 2))
    for batch, runs in groupby(list(partition.between(*readable)), key=attrgetter("batch")):
        if count >= room:
            break
        available = [run for run in runs if run.state is RecordState.AVAILABLE]
        if not available:
            continue
        throttled = max(run.delivery_count for run in available) >= throttle_limit
        if throttled and acquired:
            return acquired, True
        batch.is_split = batch.is_split or throttled
        for first, last in _parts(available, wanted, readable, room - count, throttle_limit):
            for part in partition.cut(first, last):
                part.delivery_count += 1
                _give(part, wanted)
                acquired.append(part)
                count += len(part)
        if throttled:
            return acquired, True
    return acquired, False


def _parts(
    runs: Sequence[Run], wanted: Acquisition, readable: BatchRange, room: int, throttle_limit: int
) -> Iterator[tuple[int, int]]:
    """How much of each run of a batch is given, as far as any is."""
    last_time = (
        wanted.delivery_count_limit - 1 if wanted.delivery_count_limit > _LEAST_THROTTLE_LIMIT else None
    )
    most: int | None = None
    count = 0
    for run in runs:
        alone = run.delivery_count == last_time
        if alone and count:
            return
        if most is None and run.delivery_count >= throttle_limit:
            most = max(1, len(run.batch) >> (run.delivery_count - throttle_limit + 1))
        first = max(run.first, readable.base_offset)
        size = 1 if alone else min(run.last, readable.last_offset) - first + 1
        if wanted.record_limit:
            size = min(size, room - count)
        if most is not None and count < most:
            size = min(size, most - count)
        yield first, first + size - 1
        count += size
        if alone or count == most or (wanted.record_limit and count == room):
            return


def _acquire_new(
    partition: SharePartition, wanted: Acquisition, batches: Sequence[BatchRange], last: int, room: int
) -> list[Run]:
    base = batches[0].base_offset
    if base > partition.next_offset:
        if partition.runs:
            partition.extend(base - 1, RecordState.ARCHIVED, 0)
        else:
            partition.start_at(base)
    first = partition.next_offset
    if room < last - first + 1:
        limit = first + room - 1
        last = _end_of_batch(batches, limit)
        if wanted.record_limit and limit < last:
            return [_acquire_front(partition, wanted, limit, last)]
    acquired: list[Run] = []
    ends = [] if wanted.record_limit else [batch.base_offset - 1 for batch in batches]
    for end in ends:
        # A new run begins with a batch when the last one has enough records.
        if partition.next_offset <= end < last and end - partition.next_offset + 1 >= wanted.batch_size:
            acquired.append(partition.extend(end, RecordState.AVAILABLE, 1))
    acquired.append(partition.extend(last, RecordState.AVAILABLE, 1))
    for run in acquired:
        _give(run, wanted)
    return acquired


def _acquire_front(partition: SharePartition, wanted: Acquisition, limit: int, last: int) -> Run:
    """A part of new records; the rest of them is in flight as well, but nobody's yet."""
    batch = InFlightBatch(partition.next_offset, last, is_split=True)
    run = partition.extend(limit, RecordState.AVAILABLE, 1, batch)
    partition.extend(last, RecordState.AVAILABLE, 0, batch)
    _give(run, wanted)
    return run


def _end_of_batch(batches: Sequence[BatchRange], offset: int) -> int:
    for batch in batches:
        if batch.base_offset <= offset <= batch.last_offset:
            return batch.last_offset
    return offset


def _give(run: Run, wanted: Acquisition) -> None:
    run.become(RecordState.ACQUIRED)
    run.member_id = wanted.member_id
    run.locked_until_ms = wanted.locked_until_ms


def archive_aborted(
    partition: SharePartition, acquired: Sequence[Run], aborted: Sequence[BatchRange]
) -> list[Run]:
    """Take batches of aborted transactions out of what was acquired; the rest comes back."""
    spans = [(run.first, run.last) for run in acquired]
    for first, last in spans:
        for batch in aborted:
            begin, end = max(first, batch.base_offset), min(last, batch.last_offset)
            if begin <= end:
                for part in partition.cut(begin, end):
                    part.become(RecordState.ARCHIVED)
    return [
        run
        for first, last in spans
        for run in partition.between(first, last)
        if run.state is RecordState.ACQUIRED
    ]
