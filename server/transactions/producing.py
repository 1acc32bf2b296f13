"""The transactional side of a Produce request: which of its batches the coordinator must be asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.log_store.checkpoints import TopicPartition
from ottla.log_store.verification import Verification
from ottla.server.at_once import run_at_once
from ottla.server.context import RequestContext
from ottla.server.partition import Partition
from ottla.server.transactions.verification import (
    TransactionalProducer,
    Verified,
    ask_coordinator,
    produce_error,
    verification_steps,
    verify_produce,
)
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records.header import HEADER_SIZE, BatchView

_ABORTABLE_SINCE = 11
_ADDS_PARTITIONS_SINCE = 12

Find = Callable[[TopicProduceData, int], Partition]


class TransactionalProduce:
    """What lets the batches of one request be appended: `begin`, and then `ask` if it `must_ask`."""

    __slots__ = ("_broker", "_producer", "_request", "_sequences", "_verified")

    def __init__(self, context: RequestContext, request: ProduceRequest) -> None:
        self._broker = context.broker
        self._request = request
        self._sequences: dict[TopicPartition, int] = {}  # the first one of each batch
        self._verified = Verified()
        self._producer = TransactionalProducer(
            request.transactional_id or "",
            -1,
            -1,
            adds_partitions=context.api_version >= _ADDS_PARTITIONS_SINCE,
            knows_abortable=context.api_version >= _ABORTABLE_SINCE,
        )

    def begin(self, find: Find) -> Iterator[None]:
        """Find out what the coordinator must be asked about, in as many steps as there are partitions.
        INVALID_PRODUCER_ID_MAPPING if their batches have several producers."""
        producers: set[tuple[int, int]] = set()
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                batch = _transactional_batch(data)
                if batch is not None:
                    producers.add((batch.producer_id, batch.producer_epoch))
                    self._add(find, topic, data.index, batch.base_sequence)
                yield
        if len(producers) > 1:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                "Transactional records contained more than one producer ID",
            )
        for producer_id, producer_epoch in producers:
            self._producer = self._producer._replace(producer_id=producer_id, producer_epoch=producer_epoch)
        yield from verification_steps(self._broker, self._producer, self._sequences, self._verified)

    def _add(self, find: Find, topic: TopicProduceData, index: int, sequence: int) -> None:
        try:
            partition = find(topic, index)
        except KafkaError:
            return  # the append reports it
        self._sequences[partition.topic, partition.index] = sequence

    @property
    def must_ask(self) -> bool:
        """Whether a batch begins a transaction in its partition."""
        return bool(self._verified.verifications)

    def ask_at_once(self) -> bool:
        """The same as `ask`, if that takes no waiting; whether it has been done."""
        producer, coordinator = self._producer, self._broker.transactions
        if producer.adds_partitions and not coordinator.adds_at_once(producer.transactional_id):
            return False
        run_at_once(ask_coordinator(self._broker, producer, self._verified))
        return True

    async def ask(self) -> None:
        """Let the coordinator say which batches may be appended."""
        self._verified = await verify_produce(self._broker, self._producer, self._sequences, self._verified)

    def verification_of(self, partition: Partition) -> Verification | None:
        """What lets a batch begin its transaction in a partition. Raises KafkaError if the coordinator forbids it."""
        name = (partition.topic, partition.index)
        error = self._verified.errors.get(name)
        if error is not None:
            raise produce_error(error, self._producer)
        return self._verified.verifications.get(name)


def _transactional_batch(data: PartitionProduceData) -> BatchView | None:
    """The batch of a partition if a producer wrote it in a transaction."""
    if data.records is None or len(data.records) < HEADER_SIZE:
        return None
    batch = BatchView(memoryview(data.records))
    return batch if batch.is_transactional and batch.has_producer_id else None
