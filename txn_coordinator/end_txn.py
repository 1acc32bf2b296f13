"""The end of a transaction: what EndTxn may do in each state, fencing, and the record behind the last marker.

Producers of transactions V1 keep their epoch, so the same request repeated finds its transaction complete and
succeeds. With V2 (KIP-890) every end bumps the epoch, and a repeat is known by an epoch one below the current one:

    | V2: state is      | abort: repeat | current         | commit: repeat | current           |
    |-------------------|---------------|-----------------|----------------|-------------------|
    | EMPTY             | fenced        | bumps the epoch | fenced         | INVALID_TXN_STATE |
    | COMPLETE_ABORT    | succeeds      | bumps the epoch | INVALID_TXN_STATE | INVALID_TXN_STATE |
    | COMPLETE_COMMIT   | INVALID_TXN_STATE | bumps the epoch | succeeds   | INVALID_TXN_STATE |

When the epochs of a producer id run out, a V2 transaction that ends gives its producer a new id with epoch 0: the id
is in the PREPARE record, and takes over with the COMPLETE one. The markers still go by the old id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.txn_coordinator.decision import SUCCESS, Answer, Decision, refuse
from ottla.txn_coordinator.records import TransactionLogValue
from ottla.txn_coordinator.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    ENDING,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)
from ottla.txn_coordinator.transaction import (
    EPOCH_BUMP_SINCE,
    LAST_USABLE_EPOCH,
    MAX_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
)
from ottla.wire.errors import ErrorCode

_OUTCOME: Final = {COMPLETE_COMMIT: True, COMPLETE_ABORT: False}


def decide_v1(
    transaction: Transaction, producer_id: int, producer_epoch: int, *, committed: bool, now_ms: int
) -> Decision:
    """EndTxn up to version 4."""
    if transaction.producer_id != producer_id:
        return refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer_epoch:
        return refuse(ErrorCode.PRODUCER_FENCED)
    if transaction.state in ENDING:
        return refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is not ONGOING:
        is_repeat = _OUTCOME.get(transaction.state) is committed
        return Decision(SUCCESS) if is_repeat else refuse(ErrorCode.INVALID_TXN_STATE)
    value = _prepare(transaction, committed, now_ms)
    value.client_transaction_version = 0
    return Decision(SUCCESS, value, transaction.last_producer_epoch)


def decide_v2(
    transaction: Transaction,
    producer_id: int,
    producer_epoch: int,
    new_producer_id: Callable[[], int | None],
    *,
    committed: bool,
    now_ms: int,
) -> Decision:
    """EndTxn from version 5 on."""
    if transaction.state in ENDING:
        # Asked first: the producer may already go by the id that it has from the end on.
        return refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
    repeats_over_new_id = (
        transaction.previous_producer_id == producer_id
        and producer_epoch == LAST_USABLE_EPOCH
        and transaction.producer_epoch == 0
    )
    if transaction.producer_id != producer_id and not repeats_over_new_id:
        return refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_repeat = repeats_over_new_id or transaction.producer_epoch == producer_epoch + 1
    may_repeat = transaction.state in _OUTCOME
    if producer_epoch != transaction.producer_epoch and not (is_repeat and may_repeat):
        return refuse(ErrorCode.PRODUCER_FENCED)
    if is_repeat and may_repeat:
        if _OUTCOME[transaction.state] is committed:
            return Decision(Answer(ErrorCode.NONE, transaction.producer_id, transaction.producer_epoch))
        return refuse(ErrorCode.INVALID_TXN_STATE)
    if committed and transaction.state is not ONGOING:
        return refuse(ErrorCode.INVALID_TXN_STATE)
    decision = _bump_and_prepare(transaction, new_producer_id, committed, now_ms)
    return decision or refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def fence(
    transaction: Transaction, new_producer_id: Callable[[], int | None], server_version: int, now_ms: int
) -> Decision | None:
    """Abort an open transaction so that its producer cannot go on. None when a producer id is needed and there is none.

    The client's version of transactions is not asked: the broker's is in force.
    """
    if server_version >= EPOCH_BUMP_SINCE:
        return _bump_and_prepare(transaction, new_producer_id, False, now_ms)
    value = _prepare(transaction, False, now_ms)
    value.producer_epoch = min(transaction.producer_epoch + 1, MAX_PRODUCER_EPOCH)
    value.client_transaction_version = 0
    return Decision(SUCCESS, value, NO_PRODUCER_EPOCH)


def completion(transaction: Transaction, now_ms: int) -> Decision:
    """The record behind the last marker."""
    done = COMPLETE_COMMIT if transaction.state is PREPARE_COMMIT else COMPLETE_ABORT
    value = transaction.successor(done, now_ms)
    value.transaction_partitions = []
    if transaction.next_producer_id != NO_PRODUCER_ID:
        value.producer_id = transaction.next_producer_id
        value.producer_epoch = 0
        value.next_producer_id = NO_PRODUCER_ID
    return Decision(SUCCESS, value, transaction.last_producer_epoch)


def _prepare(transaction: Transaction, committed: bool, now_ms: int) -> TransactionLogValue:
    state: TransactionState = PREPARE_COMMIT if committed else PREPARE_ABORT
    value = transaction.successor(state, now_ms)
    value.next_producer_id = NO_PRODUCER_ID
    return value


def _bump_and_prepare(
    transaction: Transaction, new_producer_id: Callable[[], int | None], committed: bool, now_ms: int
) -> Decision | None:
    value = _prepare(transaction, committed, now_ms)
    value.client_transaction_version = EPOCH_BUMP_SINCE
    if transaction.state is not ONGOING:
        value.transaction_partitions = []
        value.transaction_start_timestamp_ms = now_ms
    answer = Answer(ErrorCode.NONE, transaction.producer_id, transaction.producer_epoch + 1)
    if transaction.is_epoch_exhausted:
        producer_id = new_producer_id()
        if producer_id is None:
            return None
        value.next_producer_id = producer_id
        answer = Answer(ErrorCode.NONE, producer_id, 0)
    value.producer_epoch = min(transaction.producer_epoch + 1, MAX_PRODUCER_EPOCH)
    return Decision(answer, value, transaction.producer_epoch)
