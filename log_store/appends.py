"""Appends of the broker itself: of a coordinator, of a follower, of the metadata leader.

Clients send one batch and are checked most (see Log.append). Here any number of batches comes from a part of
the cluster that has checked them. A coordinator's get their offsets here; those that were fetched from a
leader, or written by the metadata leader, carry theirs, which must go on where the log ends, gaps allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.log_store.durability import failing
from ottla.log_store.producer_entry import BatchMetadata
from ottla.log_store.producer_state import ProducerUpdate
from ottla.log_store.segment import Segment
from ottla.log_store.txn_index import AbortedTxn
from ottla.log_store.validation import AppendOrigin, check_batch, check_crc, stamp
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.header import BatchView, patch, split_batches

if TYPE_CHECKING:
    from ottla.log_store.log import Log


class AppendResult(NamedTuple):
    """What became of an append. If `flush_due`, flush.messages asks for a flush before it is acknowledged."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool = False
    flush_due: bool = False


def repeated(log: Log, batch: BatchMetadata) -> AppendResult:
    """What a client learns of a batch that it sends again. The first one may have been written by a request that still
    waits for its flush."""
    flush_due = batch.last_offset >= log.recovery_point and log.unflushed_messages >= log.flush_messages
    return AppendResult(
        batch.first_offset, batch.last_offset, batch.timestamp, log.log_start_offset, True, flush_due
    )


def append_batches(
    log: Log,
    records: memoryview,
    *,
    leader_epoch: int,
    now_ms: int,
    origin: AppendOrigin,
    transaction_version: int,
) -> AppendResult:
    """Check, number (a coordinator's), write and note the batches."""
    batches = split_batches(records)
    if not batches:
        raise KafkaError(ErrorCode.INVALID_RECORD, "There is no batch to append.")
    assigns_offsets = origin is AppendOrigin.COORDINATOR
    for batch in batches:
        if origin is AppendOrigin.RAFT_LEADER:
            check_batch(batch, log.rules)
        else:
            check_crc(batch)  # max.message.bytes is for clients; a large group may need a large record
    if assigns_offsets:
        if records.readonly:
            records = memoryview(bytearray(records))
            batches = split_batches(records)
        batches = _assign_offsets(log, records, batches, leader_epoch, now_ms)
    else:
        _require_ascending(log, batches, leader_epoch, origin)
    update = log.producers.prepare(
        batches, trusted=not assigns_offsets, transaction_version=transaction_version
    )
    _write(log, records, batches, now_ms, update)
    return AppendResult(
        batches[0].base_offset,
        batches[-1].last_offset,
        now_ms if assigns_offsets and log.rules.append_time else -1,
        log.log_start_offset,
        False,
        log.unflushed_messages >= log.flush_messages,
    )


def _write(
    log: Log, records: memoryview, batches: list[BatchView], now_ms: int, update: ProducerUpdate
) -> None:
    max_timestamp = max(batch.max_timestamp for batch in batches)
    segment = log.segment_for(len(records), batches[-1].last_offset, max_timestamp, now_ms)
    for batch in batches:
        if batch.partition_leader_epoch > log.leader_epochs.latest_epoch or log.leader_epochs.is_unwritten:
            log.assign_epoch(batch.partition_leader_epoch, batch.base_offset)
    with failing(log, "append"):
        if any(txn.is_aborted for txn in update.completed):
            # A marker without its entry would show aborted records to everyone: first open, then write.
            with segment.txn_index.appending() as append_aborted:
                _append(log, segment, records, batches)
                for txn, last_stable_offset in log.producers.commit(update):
                    append_aborted(
                        AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, last_stable_offset)
                    )
        else:
            _append(log, segment, records, batches)
            log.producers.commit(update)
    log.producers.map_end_offset = log.log_end_offset


def _append(log: Log, segment: Segment, records: memoryview, batches: list[BatchView]) -> None:
    position = segment.size
    segment.file.append(records)
    for batch in batches:
        size = batch.size_in_bytes
        segment.note_batch(position, size, batch.base_offset, batch.last_offset, batch.max_timestamp)
        position += size
    log.log_end_offset = batches[-1].next_offset


def _assign_offsets(
    log: Log, records: memoryview, batches: list[BatchView], leader_epoch: int, now_ms: int
) -> list[BatchView]:
    offset = log.log_end_offset
    for batch in batches:
        patch(records, batch.pos, offset, leader_epoch)
        stamp(batch, log.rules, now_ms)
        offset += batch.last_offset_delta + 1
    return [BatchView(records, batch.pos) for batch in batches]


def _require_ascending(log: Log, batches: list[BatchView], leader_epoch: int, origin: AppendOrigin) -> None:
    offset = log.log_end_offset
    for batch in batches:
        if batch.base_offset < offset or batch.last_offset_delta < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"The batch at offset {batch.base_offset} does not follow {offset} in {log.name}.",
            )
        if origin is AppendOrigin.RAFT_LEADER and batch.partition_leader_epoch != leader_epoch:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"The batch has leader epoch {batch.partition_leader_epoch}, not {leader_epoch}.",
            )
        offset = batch.next_offset
