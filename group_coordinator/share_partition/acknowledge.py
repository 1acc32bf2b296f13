"""Acknowledging, renewing and releasing what was acquired.

All batches of a request are looked at before any of them changes something: all of them count, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.group_coordinator.share_partition.partition import SharePartition
from ottla.group_coordinator.share_partition.runs import OUTCOMES, AcknowledgeType, RecordState, Run
from ottla.wire.errors import ErrorCode, KafkaError


class Acknowledgement(NamedTuple):
    """What a member says of the records from first to last: one type for all, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class LockRules(NamedTuple):
    """How often a record may be delivered, and until when a lock is renewed, if it may be."""

    delivery_count_limit: int
    renewed_until_ms: int
    renew_enabled: bool


def acknowledge(
    partition: SharePartition, member_id: str, acknowledgements: Sequence[Acknowledgement], rules: LockRules
) -> list[Run]:
    """The runs whose state changed; KafkaError when the member may not say this."""
    seen = -1
    for each in acknowledgements:
        _check(partition, member_id, each, rules)
        if each.first_offset <= seen:
            raise _not_acquired("The offset cannot be acknowledged. The offset is not acquired.")
        seen = each.last_offset
    changed: list[Run] = []
    for each in acknowledgements:
        for first, last, kind in _stretches(each):
            first = max(first, partition.start_offset)
            if first > last:
                continue
            for run in partition.cut(first, last):
                if kind is AcknowledgeType.RENEW:
                    run.locked_until_ms = rules.renewed_until_ms
                else:
                    _end(run, OUTCOMES[kind], rules.delivery_count_limit)
                    changed.append(run)
    return changed


def _stretches(each: Acknowledgement) -> list[tuple[int, int, AcknowledgeType]]:
    """Consecutive offsets with the same type."""
    if len(each.types) == 1:
        return [(each.first_offset, each.last_offset, AcknowledgeType(each.types[0]))]
    found: list[tuple[int, int, AcknowledgeType]] = []
    for offset, number in enumerate(each.types, each.first_offset):
        if found and found[-1][2] == number:
            found[-1] = (found[-1][0], offset, found[-1][2])
        else:
            found.append((offset, offset, AcknowledgeType(number)))
    return found


def _check(partition: SharePartition, member_id: str, each: Acknowledgement, rules: LockRules) -> None:
    if each.last_offset < partition.start_offset:
        return
    if not partition.runs or (
        each.first_offset < partition.runs[0].first and not each.first_offset < partition.start_offset
    ):
        raise _not_acquired("Batch record not found. The request batch offsets are not found in the cache.")
    if each.first_offset >= partition.next_offset:
        raise _past("first")
    if each.last_offset >= partition.next_offset:
        raise _past("last")
    for run in partition.between(max(each.first_offset, partition.start_offset), each.last_offset):
        _check_run(run, member_id)
        batch = run.batch
        is_whole = each.first_offset <= batch.first and batch.last <= each.last_offset
        batch.is_split = batch.is_split or not is_whole or len(each.types) > 1
    if AcknowledgeType.RENEW in each.types and not rules.renew_enabled:
        raise _not_acquired("Renewing acquisition locks is not enabled for the group.")


def _check_run(run: Run, member_id: str) -> None:
    """A batch that was never split is spoken of as a whole."""
    if run.state is not RecordState.ACQUIRED:
        raise _not_acquired(
            "The offset cannot be acknowledged. The offset is not acquired."
            if run.batch.is_split
            else "The batch cannot be acknowledged. The batch is not in the acquired state."
        )
    if run.member_id != member_id:
        what = "offset" if run.batch.is_split else "batch record"
        raise _not_acquired(f"Member is not the owner of {what}")


def release_member(partition: SharePartition, member_id: str, delivery_count_limit: int) -> list[Run]:
    """A member is gone: what it had is available again."""
    return _release(partition, lambda run: run.member_id == member_id, delivery_count_limit)


def release_overdue(partition: SharePartition, now_ms: int, delivery_count_limit: int) -> list[Run]:
    """Locks have run out: the records are available again."""
    return _release(partition, lambda run: run.locked_until_ms <= now_ms, delivery_count_limit)


def _release(
    partition: SharePartition, is_meant: Callable[[Run], bool], delivery_count_limit: int
) -> list[Run]:
    released = [run for run in partition.runs if run.state is RecordState.ACQUIRED and is_meant(run)]
    for run in released:
        _end(run, RecordState.AVAILABLE, delivery_count_limit)
    return released


def _end(run: Run, state: RecordState, delivery_count_limit: int) -> None:
    """Whatever was delivered as often as may be is not available once more."""
    if state is RecordState.AVAILABLE and run.delivery_count >= delivery_count_limit:
        state = RecordState.ARCHIVED
    run.become(state)


def _not_acquired(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, detail)


def _past(which: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"Batch record not found. The {which} offset in request is past acquired records.",
    )
