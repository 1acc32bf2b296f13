"""A shard with a clock, a log and markers: executes decisions the way the server does."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import NamedTuple

from ottla.txn_coordinator.decision import Answer, Decision
from ottla.txn_coordinator.init_producer_id import InitProducerId
from ottla.txn_coordinator.records import TransactionRecord, decode_record, encode_key, encode_value
from ottla.txn_coordinator.shard import TransactionShard
from ottla.txn_coordinator.state import ENDING, PREPARE_COMMIT
from ottla.txn_coordinator.transaction import TopicPartition, Transaction
from ottla.wire.errors import ErrorCode

ID = "app"
P0, P1, P2 = ("t", 0), ("t", 1), ("u", 0)


class Marker(NamedTuple):
    """One marker as a partition got it."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    committed: bool


class Driver:
    """`now_ms` is the clock, `log` what was appended, `markers` what was written to partitions, and `events`
    both in their order.

    Partitions in `unreachable` take no markers; `finish` tries again.
    """

    def __init__(self, version: int = 2) -> None:
        self.version = version
        self.now_ms = 1_000_000
        self.log: list[tuple[bytes, bytes | None]] = []
        self.markers: list[Marker] = []
        self.events: list[TransactionRecord | Marker] = []
        self.unreachable: set[TopicPartition] = set()
        self.producer_ids = itertools.count(100)
        self.has_producer_ids = True
        self.shard = self._new_shard()

    def _new_shard(self) -> TransactionShard:
        return TransactionShard(self._new_producer_id, lambda: self.version)

    def _new_producer_id(self) -> int | None:
        return next(self.producer_ids) if self.has_producer_ids else None

    def replayed(self) -> TransactionShard:
        """A shard made from the log alone."""
        shard = self._new_shard()
        for key, value in self.log:
            shard.apply(decode_record(key, value))
        return shard

    def restart(self) -> None:
        """Forget everything but the log, and go on from there."""
        self.shard = self.replayed()
        self.finish()

    def append(self, record: TransactionRecord, last_producer_epoch: int = -1) -> None:
        value = None if record.value is None else encode_value(record.value, self.shard.value_version)
        self.log.append((encode_key(record.transactional_id), value))
        self.events.append(record)
        self.shard.apply(record, last_producer_epoch)

    def execute(self, decision: Decision, transactional_id: str = ID) -> Answer:
        if decision.value is not None:
            self.append(TransactionRecord(transactional_id, decision.value), decision.last_producer_epoch)
            if self.transaction(transactional_id).state in ENDING:
                self.finish()
        return decision.answer

    def finish(self) -> None:
        """Write the markers that can be written, and complete what has them all."""
        for transaction in self.shard.ending():
            committed = transaction.state is PREPARE_COMMIT
            for partition in sorted(transaction.partitions - self.unreachable):
                marker = Marker(partition, transaction.producer_id, transaction.producer_epoch, committed)
                self.markers.append(marker)
                self.events.append(marker)
                self.shard.marker_written(transaction.transactional_id, partition)
            if not transaction.partitions:
                self.execute(
                    self.shard.complete(transaction.transactional_id, self.now_ms),
                    transaction.transactional_id,
                )

    # Requests ----------------------------------------------------------------------------------------------

    def init(
        self, producer_id: int = -1, epoch: int = -1, timeout_ms: int = 60_000, transactional_id: str = ID
    ) -> Answer:
        wanted = InitProducerId(timeout_ms, producer_id, epoch)
        return self.execute(
            self.shard.init_producer_id(transactional_id, wanted, self.now_ms), transactional_id
        )

    def add(
        self, producer: Answer, *partitions: TopicPartition, client: int = 2, transactional_id: str = ID
    ) -> ErrorCode:
        decision = self.shard.add_partitions(
            transactional_id,
            producer.producer_id,
            producer.producer_epoch,
            partitions,
            client,
            self.now_ms,
        )
        return self.execute(decision, transactional_id).error

    def end(
        self, producer: Answer, *, committed: bool = True, client: int = 2, transactional_id: str = ID
    ) -> Answer:
        decision = self.shard.end(
            transactional_id,
            producer.producer_id,
            producer.producer_epoch,
            committed=committed,
            client_version=client,
            now_ms=self.now_ms,
        )
        return self.execute(decision, transactional_id)

    def verify(
        self, producer: Answer, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        return self.shard.verify(ID, producer.producer_id, producer.producer_epoch, partitions)

    def let_time_pass(self, milliseconds: int) -> None:
        """Move the clock and abort what has timed out."""
        self.now_ms += milliseconds
        for transactional_id in self.shard.timed_out(self.now_ms):
            self.execute(self.shard.abort_timed_out(transactional_id, self.now_ms), transactional_id)

    def expire(self, expiration_ms: int) -> None:
        for transactional_id in self.shard.expired(self.now_ms, expiration_ms):
            self.append(TransactionRecord(transactional_id, None))

    def transaction(self, transactional_id: str = ID) -> Transaction:
        return self.shard.transactions[transactional_id]


def facts(shard: TransactionShard) -> dict[str, dict[str, object]]:
    """What the log must give again: all but the last epoch, which only memory has."""
    return {
        transactional_id: {
            name: getattr(transaction, name)
            for name in Transaction.__slots__
            if name != "last_producer_epoch"
        }
        for transactional_id, transaction in shard.transactions.items()
    }
