"""The markers that end a transaction in its partitions (KIP-98).

A marker is a control batch of the transaction's producer. The log judges its epochs, the last stable offset moves past
the transaction, and whoever waits for committed records looks again. In a partition of the groups' topic the offsets
that were committed in the transaction count from then on, or are forgotten.

The marker has the same bytes for every partition but for its offset and leader epoch, which the checksum leaves out. So
it is made once, and the markers of a transaction are all in their logs before anybody else has a turn, unless they are
very many.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import trio

from ottla.log_store.checkpoints import TopicPartition
from ottla.log_store.durability import has_flush_policy
from ottla.log_store.log import Log
from ottla.log_store.validation import AppendOrigin
from ottla.server.internal_topics import OFFSETS_TOPIC
from ottla.server.turns import map_in_turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.control import ControlType, build_end_txn_marker

if TYPE_CHECKING:
    from ottla.server.broker import Broker

# A coordinator of transactions knows nothing of groups, only that the leader is not ready yet.
_GROUPS_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
_AT_ONCE = 30


class Marker(NamedTuple):
    """How a transaction ends."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int


async def write_marker(
    broker: Broker,
    topic: str,
    partition: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    committed: bool,
    transaction_version: int,
) -> ErrorCode:
    """End a transaction in one partition."""
    marker = Marker(producer_id, producer_epoch, coordinator_epoch, committed, transaction_version)
    return (await write_markers(broker, marker, [(topic, partition)]))[topic, partition]


def are_written_at_once(broker: Broker, partitions: Collection[TopicPartition]) -> bool:
    """Whether `write_markers` need not wait: for a turn, or for a flush."""
    table = broker.partitions
    return len(partitions) <= _AT_ONCE and not any(
        has_flush_policy(found.log)
        for topic, index in partitions
        if (found := table.of_topic(topic).get(index)) is not None
    )


async def write_markers(
    broker: Broker, marker: Marker, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """End a transaction in all these partitions, and tell what became of each."""
    results: dict[TopicPartition, ErrorCode] = {}
    flushes: list[tuple[TopicPartition, Log]] = []
    now_ms = broker.now_ms()
    template = build_end_txn_marker(
        ControlType.COMMIT if marker.committed else ControlType.ABORT,
        timestamp=now_ms,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
    )

    def write(name: TopicPartition) -> None:
        try:
            log = _append(broker, marker, memoryview(bytearray(template)), name, now_ms)
        except KafkaError as error:
            results[name] = error.code
            return
        results[name] = ErrorCode.NONE
        if log is not None:
            flushes.append((name, log))

    if len(partitions) > _AT_ONCE:
        await map_in_turns(write, partitions)
    else:
        for name in partitions:
            write(name)
    for name, log in flushes:
        try:
            await trio.to_thread.run_sync(log.flush)
        except KafkaError as error:
            results[name] = error.code
    return results


def _append(
    broker: Broker, marker: Marker, batch: memoryview, name: TopicPartition, now_ms: int
) -> Log | None:
    """Append the marker to one partition; returns its log if flush.messages asks for a flush."""
    topic, index = name
    partition = broker.partitions.by_name(topic, index)
    if topic == OFFSETS_TOPIC:
        try:
            flush_due = broker.groups.end_transaction(
                index,
                batch,
                marker.producer_id,
                committed=marker.committed,
                transaction_version=marker.transaction_version,
            )
        except KafkaError as error:
            if error.code in _GROUPS_NOT_READY:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER) from error
            raise
    else:
        flush_due = partition.append(
            batch, now_ms, AppendOrigin.COORDINATOR, marker.transaction_version
        ).flush_due
    return partition.log if flush_due else None
