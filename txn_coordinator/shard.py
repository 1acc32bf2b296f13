"""The transactions of one partition of `__transaction_state`.

Requests are decided here and change nothing: a decision's record is appended by the server and comes back through
`apply`, which also replays the log at start. So a shard is always what its log says, and an append that fails leaves
nothing to undo.

Inputs are the time, new producer ids, and the transaction.version in force, which says what aborts that no client
asks for do to the epoch, and whether records may have tagged fields.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ottla.txn_coordinator import add_partitions, end_txn, init_producer_id
from ottla.txn_coordinator.decision import Decision, refuse
from ottla.txn_coordinator.init_producer_id import InitProducerId
from ottla.txn_coordinator.records import TransactionLogValue, TransactionRecord
from ottla.txn_coordinator.state import AT_REST, ENDING, ONGOING
from ottla.txn_coordinator.transaction import (
    EPOCH_BUMP_SINCE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TopicPartition,
    Transaction,
)
from ottla.wire.errors import ErrorCode

_NO_MAPPING = refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING)


class TransactionShard:
    """`transactions` by transactional id; `ongoing` are those that may time out."""

    __slots__ = ("_new_producer_id", "_transaction_version", "ongoing", "transactions")

    def __init__(
        self, new_producer_id: Callable[[], int | None], transaction_version: Callable[[], int]
    ) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.ongoing: dict[str, Transaction] = {}
        self._new_producer_id = new_producer_id
        self._transaction_version = transaction_version

    # The log -----------------------------------------------------------------------------------------------

    def apply(self, record: TransactionRecord, last_producer_epoch: int = NO_PRODUCER_EPOCH) -> None:
        """Follow a record of the log."""
        transactional_id, value = record
        if value is None:
            self.transactions.pop(transactional_id, None)
            self.ongoing.pop(transactional_id, None)
            return
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            transaction = self.transactions[transactional_id] = Transaction(transactional_id)
        transaction.replay(value, last_producer_epoch)
        if transaction.state is ONGOING:
            self.ongoing[transactional_id] = transaction
        else:
            self.ongoing.pop(transactional_id, None)

    @property
    def value_version(self) -> int:
        """The version in which records are to be written."""
        return 1 if self._transaction_version() >= 1 else 0

    # Requests ----------------------------------------------------------------------------------------------

    def init_producer_id(self, transactional_id: str, wanted: InitProducerId, now_ms: int) -> Decision:
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return self._writable(init_producer_id.decide_new(wanted, self._new_producer_id, now_ms))
        return self._writable(
            init_producer_id.decide(
                transaction, wanted, self._new_producer_id, self._transaction_version(), now_ms
            )
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> Decision:
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return _NO_MAPPING
        return self._writable(
            add_partitions.decide_add(
                transaction, producer_id, producer_epoch, partitions, client_version, now_ms
            )
        )

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        return add_partitions.verify(
            self.transactions.get(transactional_id), producer_id, producer_epoch, partitions
        )

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        client_version: int,
        now_ms: int,
    ) -> Decision:
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return _NO_MAPPING
        # A version 0 record cannot say what transactions V2 need, so a client is not let into them.
        if client_version < EPOCH_BUMP_SINCE or self._transaction_version() < 1:
            decision = end_txn.decide_v1(
                transaction, producer_id, producer_epoch, committed=committed, now_ms=now_ms
            )
        else:
            decision = end_txn.decide_v2(
                transaction,
                producer_id,
                producer_epoch,
                self._new_producer_id,
                committed=committed,
                now_ms=now_ms,
            )
        return self._writable(decision)

    # The end of transactions -------------------------------------------------------------------------------

    def ending(self) -> list[Transaction]:
        """Transactions whose end is decided and not complete: after a restart their markers are written again."""
        return [each for each in self.transactions.values() if each.state in ENDING]

    def marker_written(self, transactional_id: str, partition: TopicPartition) -> None:
        """One partition less to wait for."""
        self.transactions[transactional_id].partitions.discard(partition)

    def complete(self, transactional_id: str, now_ms: int) -> Decision:
        """All markers are written."""
        return self._writable(end_txn.completion(self.transactions[transactional_id], now_ms))

    def timed_out(self, now_ms: int) -> list[str]:
        """Transactions that have been open for longer than their producers asked for."""
        return [each for each in self.ongoing if self.is_timed_out(each, now_ms)]

    def is_timed_out(self, transactional_id: str, now_ms: int) -> bool:
        transaction = self.ongoing.get(transactional_id)
        return transaction is not None and transaction.start_ms + transaction.timeout_ms < now_ms

    def abort_timed_out(self, transactional_id: str, now_ms: int) -> Decision:
        """Abort and fence the producer."""
        fencing = end_txn.fence(
            self.transactions[transactional_id], self._new_producer_id, self._transaction_version(), now_ms
        )
        return self._writable(fencing or refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))

    def expired(self, now_ms: int, expiration_ms: int) -> list[str]:
        """Transactional ids that nobody has used for long; a tombstone forgets them."""
        return [each for each in self.transactions if self.is_expired(each, now_ms, expiration_ms)]

    def is_expired(self, transactional_id: str, now_ms: int, expiration_ms: int) -> bool:
        transaction = self.transactions.get(transactional_id)
        return (
            transaction is not None
            and transaction.state in AT_REST
            and transaction.last_update_ms <= now_ms - expiration_ms
        )

    def _writable(self, decision: Decision) -> Decision:
        if decision.value is not None and self.value_version == 0:
            _without_tagged_fields(decision.value)
        return decision


def _without_tagged_fields(value: TransactionLogValue) -> None:
    value.previous_producer_id = NO_PRODUCER_ID
    value.next_producer_id = NO_PRODUCER_ID
    value.client_transaction_version = 0
