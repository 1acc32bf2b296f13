"""Partitions of a transaction: adding them, and asking whether they are in it (KIP-890).

The first one opens the transaction. What is there already needs no record.
"""

from __future__ import annotations

from collections.abc import Collection

from ottla.txn_coordinator.decision import SUCCESS, Decision, refuse
from ottla.txn_coordinator.state import ENDING, ONGOING
from ottla.txn_coordinator.transaction import TopicPartition, Transaction, by_topic
from ottla.wire.errors import ErrorCode


def decide_add(
    transaction: Transaction,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
    client_version: int,
    now_ms: int,
) -> Decision:
    """Add partitions to the transaction, opening it if need be."""
    if transaction.state in ENDING:
        # Asked first: with transactions V2 the producer may already go by the id that it has from the end on.
        return refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.producer_id != producer_id:
        return refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer_epoch:
        return refuse(ErrorCode.PRODUCER_FENCED)
    is_open = transaction.state is ONGOING
    if is_open and transaction.partitions.issuperset(partitions):
        return Decision(SUCCESS)
    value = transaction.successor(ONGOING, now_ms)
    value.transaction_partitions = by_topic(transaction.partitions.union(partitions))
    value.client_transaction_version = client_version
    if not is_open:
        value.transaction_start_timestamp_ms = now_ms
    return Decision(SUCCESS, value, transaction.last_producer_epoch)


def verify(
    transaction: Transaction | None,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """What a broker wants to know before it appends records of a transaction."""
    if transaction is None or transaction.producer_id != producer_id:
        return dict.fromkeys(partitions, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer_epoch:
        return dict.fromkeys(partitions, ErrorCode.PRODUCER_FENCED)
    if transaction.state in ENDING:
        return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.partitions.issuperset(partitions):
        return dict.fromkeys(partitions, ErrorCode.NONE)
    return {
        partition: ErrorCode.NONE if partition in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }
