"""A loaded shard of transactions and the partition of `__transaction_state` that it writes to."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from ottla.log_store.validation import AppendOrigin
from ottla.server.partition import Partition
from ottla.txn_coordinator.decision import Decision
from ottla.txn_coordinator.records import TransactionRecord, encode_key, encode_value
from ottla.txn_coordinator.shard import TransactionShard
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records import Record, build_batch

# As Kafka has it: what the log says of an append, as a client of the coordinator must hear it.
_TOLD_AS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class LoadedShard:
    """Appends what the shard decides, and applies it when it is in the log."""

    __slots__ = ("is_dropped", "partition", "shard")

    def __init__(self, shard: TransactionShard, partition: Partition) -> None:
        self.shard = shard
        self.partition = partition
        self.is_dropped = False  # the partition is no longer ours

    async def write(self, transactional_id: str, decision: Decision, now_ms: int) -> None:
        """Append and apply the record of a decision, if it has one. Raises KafkaError, and nothing has changed then."""
        if decision.value is not None:
            record = TransactionRecord(transactional_id, decision.value)
            if self._append([record], now_ms, decision.last_producer_epoch):
                await trio.to_thread.run_sync(self.partition.log.flush)

    async def forget(self, records: Sequence[TransactionRecord], now_ms: int) -> None:
        """Append and apply tombstones. Raises KafkaError."""
        if self._append(records, now_ms, -1):
            await trio.to_thread.run_sync(self.partition.log.flush)

    def _append(self, records: Sequence[TransactionRecord], now_ms: int, last_producer_epoch: int) -> bool:
        """Returns whether a flush is due before anybody is told."""
        if self.is_dropped:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        version = self.shard.value_version
        batch = build_batch(
            [
                Record(
                    offset,
                    now_ms,
                    encode_key(record.transactional_id),
                    None if record.value is None else encode_value(record.value, version),
                )
                for offset, record in enumerate(records)
            ]
        )
        try:
            result = self.partition.append(memoryview(bytearray(batch)), now_ms, AppendOrigin.COORDINATOR)
        except KafkaError as error:
            raise KafkaError(_TOLD_AS.get(error.code, error.code), error.detail) from error
        for record in records:
            self.shard.apply(record, last_producer_epoch)
        return result.flush_due
