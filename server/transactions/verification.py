"""Asking the coordinator before the first batch of a transaction goes into a partition (KIP-890).

A client of transactions V1 has added the partition itself, so the coordinator is only asked whether that is so; one of
V2 leaves the adding to the broker. Once a batch of the transaction is in the log, its producer state answers and nobody
is asked. What the coordinator answers is translated into errors that producers understand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import trio

from ottla.log_store.checkpoints import TopicPartition
from ottla.log_store.verification import NOT_REQUIRED, Verification
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.server.broker import Broker

_NOT_READY = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class TransactionalProducer(NamedTuple):
    """Who writes in a transaction, and what its client's version of the API lets it understand."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    adds_partitions: bool
    knows_abortable: bool


class Verified:
    """What may be appended: verifications by partition where one is needed, and why others may not."""

    __slots__ = ("errors", "verifications")

    def __init__(self) -> None:
        self.verifications: dict[TopicPartition, Verification] = {}
        self.errors: dict[TopicPartition, ErrorCode] = {}


def begin_verification(
    broker: Broker, producer: TransactionalProducer, sequences: Mapping[TopicPartition, int]
) -> Verified:
    """Which of these partitions, each with the first sequence of its batch, the coordinator must be asked about."""
    verified = Verified()
    for _ in verification_steps(broker, producer, sequences, verified):
        pass
    return verified


def verification_steps(
    broker: Broker,
    producer: TransactionalProducer,
    sequences: Mapping[TopicPartition, int],
    verified: Verified,
) -> Iterator[None]:
    """Note it in `verified`, in as many steps as there are partitions."""
    if not producer.adds_partitions and not broker.config.get_bool(
        "transaction.partition.verification.enable"
    ):
        verified.verifications = dict.fromkeys(sequences, NOT_REQUIRED)
        return
    now_ms = broker.now_ms()
    for name, sequence in sequences.items():
        try:
            verification = broker.partitions.by_name(*name).log.producers.start_verification(
                producer.producer_id,
                producer.producer_epoch,
                sequence,
                supports_epoch_bump=producer.adds_partitions,
                now_ms=now_ms,
            )
        except KafkaError as error:
            verified.errors[name] = error.code
        else:
            if verification is not None:
                verified.verifications[name] = verification
        yield


async def ask_coordinator(broker: Broker, producer: TransactionalProducer, verified: Verified) -> None:
    """Let the coordinator verify or add the partitions, and note what it refuses."""
    names = [name for name, each in verified.verifications.items() if each is not NOT_REQUIRED]
    if not names:
        return
    coordinator = broker.transactions
    ask = coordinator.add_partitions if producer.adds_partitions else coordinator.verify
    answers = await ask(producer.transactional_id, producer.producer_id, producer.producer_epoch, names)
    for name, code in answers.items():
        if code is ErrorCode.NONE:
            continue
        if code is ErrorCode.PRODUCER_FENCED:
            verified.errors[name] = ErrorCode.INVALID_PRODUCER_EPOCH
        elif code is ErrorCode.TRANSACTION_ABORTABLE and not producer.knows_abortable:
            verified.errors[name] = ErrorCode.INVALID_TXN_STATE
        else:
            verified.errors[name] = code


async def verify_produce(
    broker: Broker,
    producer: TransactionalProducer,
    sequences: Mapping[TopicPartition, int],
    verified: Verified,
) -> Verified:
    """Ask about what `begin_verification` found. A transaction whose end is still being written down is waited for a
    little if the broker adds the partitions: sending the records once more would cost much more."""
    config = broker.config
    backoff = config.get_int("add.partitions.to.txn.retry.backoff.ms") / 1000
    retry_ms = min(
        config.get_int("add.partitions.to.txn.retry.backoff.max.ms"), config.get_int("request.timeout.ms")
    )
    deadline = trio.current_time() + retry_ms / 1000
    while True:
        await ask_coordinator(broker, producer, verified)
        if (
            not producer.adds_partitions
            or ErrorCode.CONCURRENT_TRANSACTIONS not in verified.errors.values()
            or trio.current_time() >= deadline
        ):
            return verified
        await trio.sleep(backoff)
        verified = begin_verification(broker, producer, sequences)


def produce_error(code: ErrorCode, producer: TransactionalProducer) -> KafkaError:
    """What a producer is told: errors that it would take for fatal become one after which it sends again."""
    if code is ErrorCode.INVALID_TXN_STATE:
        return KafkaError(code, "Partition was not added to the transaction")
    if code in _NOT_READY or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not producer.adds_partitions):
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    return KafkaError(code)
