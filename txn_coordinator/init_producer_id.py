"""InitProducerId of a transactional producer: the newest one gets an epoch above all others.

A producer that starts brings only its transactional id. One that goes on after an error brings the producer id and
epoch it has (KIP-360): it gets the next epoch if it is still the newest producer of its id, and is fenced otherwise.
A repeat of such a request, whose answer was lost, is known by the epoch before the current one.

A transaction that is still open is aborted first, under a bumped epoch that no producer is ever told, and the client
asks again until that has ended: CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.txn_coordinator.decision import Answer, Decision, refuse
from ottla.txn_coordinator.end_txn import fence
from ottla.txn_coordinator.records import TransactionLogValue
from ottla.txn_coordinator.state import EMPTY, ENDING, ONGOING
from ottla.txn_coordinator.transaction import LAST_USABLE_EPOCH, NO_PRODUCER_EPOCH, Transaction
from ottla.wire.errors import ErrorCode


class InitProducerId(NamedTuple):
    """What the producer asks, with the id and epoch that it has, if any."""

    transaction_timeout_ms: int
    producer_id: int = -1
    producer_epoch: int = NO_PRODUCER_EPOCH

    @property
    def goes_on(self) -> bool:
        return self.producer_id >= 0


def decide_new(wanted: InitProducerId, new_producer_id: Callable[[], int | None], now_ms: int) -> Decision:
    """For a transactional id that nobody has used, or that has expired: whoever asks is the first producer."""
    producer_id = new_producer_id()
    if producer_id is None:
        return refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    value = TransactionLogValue(
        producer_id=producer_id,
        previous_producer_id=producer_id,
        producer_epoch=0,
        transaction_timeout_ms=wanted.transaction_timeout_ms,
        transaction_status=EMPTY,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=now_ms,
        transaction_start_timestamp_ms=-1,
    )
    return Decision(Answer(ErrorCode.NONE, producer_id, 0), value)


def decide(
    transaction: Transaction,
    wanted: InitProducerId,
    new_producer_id: Callable[[], int | None],
    server_version: int,
    now_ms: int,
) -> Decision:
    """For an id that has had a producer."""
    if transaction.state in ENDING:
        return refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
    if wanted.goes_on and not _may_be_its_producer(transaction, wanted):
        return refuse(ErrorCode.PRODUCER_FENCED)
    if transaction.state is ONGOING:
        fencing = fence(transaction, new_producer_id, server_version, now_ms)
        if fencing is None:
            return refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return fencing._replace(answer=Answer(ErrorCode.CONCURRENT_TRANSACTIONS))
    current = transaction.producer_epoch
    if transaction.is_epoch_exhausted and (not wanted.goes_on or wanted.producer_epoch == current):
        producer_id = new_producer_id()
        if producer_id is None:
            return refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        last_epoch = current if wanted.goes_on else NO_PRODUCER_EPOCH
        return _begin(transaction, wanted, producer_id, 0, last_epoch, now_ms)
    if not wanted.goes_on:
        return _begin(transaction, wanted, transaction.producer_id, current + 1, NO_PRODUCER_EPOCH, now_ms)
    if wanted.producer_epoch == current:
        return _begin(transaction, wanted, transaction.producer_id, current + 1, current, now_ms)
    if wanted.producer_epoch == transaction.last_producer_epoch:
        return _begin(
            transaction, wanted, transaction.producer_id, current, transaction.last_producer_epoch, now_ms
        )
    return refuse(ErrorCode.PRODUCER_FENCED)


def _may_be_its_producer(transaction: Transaction, wanted: InitProducerId) -> bool:
    """Its id is the current one, or was, when its epochs had run out and the answer that said so may have been lost."""
    return wanted.producer_id == transaction.producer_id or (
        wanted.producer_id == transaction.previous_producer_id and wanted.producer_epoch >= LAST_USABLE_EPOCH
    )


def _begin(
    transaction: Transaction,
    wanted: InitProducerId,
    producer_id: int,
    producer_epoch: int,
    last_epoch: int,
    now_ms: int,
) -> Decision:
    value = transaction.successor(EMPTY, now_ms)
    value.producer_id = producer_id
    value.producer_epoch = producer_epoch
    value.transaction_timeout_ms = wanted.transaction_timeout_ms
    value.transaction_start_timestamp_ms = -1
    return Decision(Answer(ErrorCode.NONE, producer_id, producer_epoch), value, last_epoch)
