"""Rounds of compaction in this thread, and what consumers see of a log before and after them."""

from __future__ import annotations

from typing import NamedTuple

from ottla.log_store.compaction.cleaner import clean
from ottla.log_store.compaction.job import CleanedGroup, CleaningResult
from ottla.log_store.compaction.log_cleaning import CleaningResources, look_at
from ottla.log_store.compaction.swap import swap_segments
from ottla.log_store.log import Log
from ottla.log_store.validation import AppendOrigin
from ottla.wire.records.control import ControlType, build_end_txn_marker, control_type_of
from ottla.wire.records.header import BatchView
from ottla.wire.records.records import Record, iter_records
from tests.log_store.batches import NOW_MS, append, views

ROOMY = CleaningResources(key_map_bytes=1 << 24)


class Seen(NamedTuple):
    """A record as a consumer gets it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def clean_once(log: Log, now_ms: int = NOW_MS, resources: CleaningResources = ROOMY) -> CleaningResult | None:
    """One round, whatever the share of dirty bytes; None if nothing may be cleaned."""
    log.flush()
    dirty = look_at(log, now_ms)
    if dirty is None:
        return None
    for answer in clean(dirty.job(now_ms, resources), log.fs):
        if isinstance(answer, CleanedGroup):
            assert swap_segments(log, answer.replaced, now_ms)
        else:
            log.cleaner_checkpoint = answer.end_offset
            return answer
    raise AssertionError("cleaning ended without a result")


def clean_fully(log: Log, now_ms: int = NOW_MS, resources: CleaningResources = ROOMY) -> int:
    """Rounds until nothing is dirty; returns how many."""
    rounds = 0
    while clean_once(log, now_ms, resources) is not None:
        rounds += 1
    return rounds


def batches_of(log: Log) -> list[tuple[BatchView, bool]]:
    """Every batch from the log start on, and whether its transaction was aborted, as consumers find out."""
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, 2000, upto=log.log_end_offset, at_least_one=True)
        batches = views(read)
        if not batches:
            break
        to_come = sorted(log.aborted_transactions(offset, read), key=lambda txn: -txn.first_offset)
        aborted: set[int] = set()
        for view in batches:
            while to_come and to_come[-1].first_offset <= view.last_offset:
                aborted.add(to_come.pop().producer_id)
            if view.is_control and is_abort(view):
                aborted.discard(view.producer_id)
            found.append((view, view.is_transactional and view.producer_id in aborted))
        offset = batches[-1].next_offset
    return found


def is_abort(view: BatchView) -> bool:
    record = next(iter_records(view), None)
    return record is not None and control_type_of(record) == ControlType.ABORT


def seen(log: Log, *, committed: bool = True) -> list[Seen]:
    """What a consumer reads from the beginning to the last stable offset, or to the end."""
    end = log.last_stable_offset if committed else log.log_end_offset
    return [
        Seen(record.offset, record.timestamp, record.key, record.value)
        for view, aborted in batches_of(log)
        if not view.is_control and not (committed and aborted)
        for record in iter_records(view)
        if log.log_start_offset <= record.offset < end
    ]


def state_of(records: list[Seen]) -> dict[bytes | None, bytes]:
    """What an application that keeps the last value of each key has in the end."""
    state: dict[bytes | None, bytes] = {}
    for record in records:
        if record.value is None:
            state.pop(record.key, None)
        else:
            state[record.key] = record.value
    return state


def keyed(*pairs: tuple[bytes, bytes | None], timestamp: int = NOW_MS) -> list[Record]:
    return [Record(index, timestamp, key, value) for index, (key, value) in enumerate(pairs)]


def end_txn(log: Log, kind: ControlType, producer_id: int, *, epoch: int = 0, now_ms: int = NOW_MS) -> int:
    marker = build_end_txn_marker(
        kind, timestamp=now_ms, producer_id=producer_id, producer_epoch=epoch, coordinator_epoch=0
    )
    return append(log, memoryview(bytearray(marker)), origin=AppendOrigin.COORDINATOR)
