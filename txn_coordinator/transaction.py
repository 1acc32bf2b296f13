"""One transactional id: who its producer is, how far its transaction has come, and which partitions it has touched.

All of it but two things is what the last record of the id says. `last_producer_epoch`, the epoch before the current
one, is how a repeated InitProducerId is told from a fenced producer (KIP-360); Kafka keeps it out of the log too, so
after a restart such a repeat is fenced. And while a transaction ends, `partitions` shrinks with every marker that is
written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.txn_coordinator.records import PartitionsSchema, TransactionLogValue
from ottla.txn_coordinator.state import EMPTY, MOVES, TransactionState

TopicPartition = tuple[str, int]

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
MAX_PRODUCER_EPOCH: Final = 32767
LAST_USABLE_EPOCH: Final = MAX_PRODUCER_EPOCH - 1
"""A producer never gets the highest epoch, so that it can always be fenced."""

EPOCH_BUMP_SINCE: Final = 2
"""From this transaction.version on the epoch is bumped at every end of a transaction (KIP-890)."""


class Transaction:
    """The state of one transactional id."""

    __slots__ = (
        "client_transaction_version",
        "last_producer_epoch",
        "last_update_ms",
        "next_producer_id",
        "partitions",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "start_ms",
        "state",
        "timeout_ms",
        "transactional_id",
    )

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.producer_id = NO_PRODUCER_ID
        self.previous_producer_id = NO_PRODUCER_ID
        self.next_producer_id = NO_PRODUCER_ID  # replaces producer_id when the transaction is complete
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.last_producer_epoch = NO_PRODUCER_EPOCH
        self.timeout_ms = 0
        self.state = EMPTY
        self.partitions: set[TopicPartition] = set()
        self.start_ms = -1
        self.last_update_ms = -1
        self.client_transaction_version = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the next producer needs a new producer id."""
        return self.producer_epoch >= LAST_USABLE_EPOCH

    def replay(self, value: TransactionLogValue, last_producer_epoch: int) -> None:
        """Become what a record says."""
        self.producer_id = value.producer_id
        self.previous_producer_id = value.previous_producer_id
        self.next_producer_id = value.next_producer_id
        self.producer_epoch = value.producer_epoch
        self.last_producer_epoch = last_producer_epoch
        self.timeout_ms = value.transaction_timeout_ms
        self.state = TransactionState(value.transaction_status)
        self.partitions = {
            (each.topic, partition)
            for each in value.transaction_partitions or ()
            for partition in each.partition_ids
        }
        self.start_ms = value.transaction_start_timestamp_ms
        self.last_update_ms = value.transaction_last_update_timestamp_ms
        self.client_transaction_version = value.client_transaction_version

    def successor(self, state: TransactionState, now_ms: int) -> TransactionLogValue:
        """A record that moves to another state and changes nothing else, for the caller to complete."""
        assert state in MOVES[self.state], f"{self.state.label} does not become {state.label}"
        return TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=state,
            transaction_partitions=None if state is EMPTY else by_topic(self.partitions),
            transaction_last_update_timestamp_ms=now_ms,
            transaction_start_timestamp_ms=self.start_ms,
            client_transaction_version=self.client_transaction_version,
        )


def by_topic(partitions: Iterable[TopicPartition]) -> list[PartitionsSchema]:
    """Partitions in the form of records."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [PartitionsSchema(topic, sorted(topics[topic])) for topic in sorted(topics)]
