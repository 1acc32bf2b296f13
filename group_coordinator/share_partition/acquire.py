"""Acquiring: records that were read from the log are given to a member.

Whole batches are given, so that more records than asked for may come, unless the member insists on a limit (KIP-1206).
A run that was delivered too often already is given alone and in ever smaller parts, its last time record by record, so
that one bad record does not take its neighbours with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.group_coordinator.share_partition.partition import SharePartition
from ottla.group_coordinator.share_partition.runs import RecordState, Run

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
    acquired, throttled = _acquire_available(partition, wanted, first, last, room)
    room -= sum(map(len, acquired))
    if room > 0 and not throttled and partition.next_offset <= last:
        acquired += _acquire_new(partition, wanted, batches, last, room)
    return acquired


def _archive_missing(partition: SharePartition, first: int) -> None:
    """What was read begins here, so whatever is available in front of it is not in the log any more."""
    if partition.fetch_offset >= first:
        return
    for run in partition.cut(partition.start_offset, first - 1):
        if run.state is RecordState.AVAILABLE:
            run.become(RecordState.ARCHIVED)
    partition.settle()


def _acquire_available(
    partition: SharePartition, wanted: Acquisition, first: int, last: int, room: int
) -> tuple[list[Run], bool]:
    """Runs that were in flight before; and whether something bad keeps the rest waiting."""
    acquired: list[Run] = []
    count = 0
    for run in list(partition.between(first, last)):
        if run.state is not RecordState.AVAILABLE:
            continue
        if count >= room:
            break
        most = _throttled(run, wanted.delivery_count_limit)
        if most is not None and acquired:
            return acquired, True
        upto = min(run.last, last)
        if wanted.record_limit:
            upto = min(upto, max(run.first, first) + room - count - 1)
        if most is not None:
            upto = min(upto, max(run.first, first) + most - 1)
        for part in partition.cut(max(run.first, first), upto):
            part.delivery_count += 1
            _give(part, wanted)
            acquired.append(part)
            count += len(part)
        if most is not None:
            return acquired, True
    return acquired, False


def _throttled(run: Run, delivery_count_limit: int) -> int | None:
    """How many records of a run may be delivered at once, if not all."""
    limit = max(_LEAST_THROTTLE_LIMIT, -(-delivery_count_limit // 2))
    if run.delivery_count < limit:
        return None
    if delivery_count_limit > _LEAST_THROTTLE_LIMIT and run.delivery_count >= delivery_count_limit - 1:
        return 1
    return max(1, run.batch_size >> (run.delivery_count - limit + 1))


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
        last = limit if wanted.record_limit else _end_of_batch(batches, limit)
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
