"""Produce (0), versions 3-13: append record batches to partitions.

Advertised from 0, because librdkafka turns compression off when the range begins at 3 (KAFKA-18659).
- acks 0 gets no answer; when such a request fails, closing the connection is the only way to say so.
- acks 1 and all are the same with a single replica: the record is in the log.
- 7 zstd, 8 record errors, 9 flexible, 10 leader hints, 13 topic ids instead of names.
- Before the first batch of a transaction in a partition its coordinator is asked: up to 11 the partition must have been
  added to the transaction before, 12 adds it (KIP-890). 11 may be answered TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING

import trio

from ottla.log_store.appends import AppendResult
from ottla.log_store.log import Log
from ottla.log_store.validation import CostlyBatch, prepare_client_batch
from ottla.server.context import RequestContext
from ottla.server.dispatch import CloseConnection
from ottla.server.internal_topics import is_internal_topic
from ottla.server.own_threads import OwnThreads
from ottla.server.partition import Partition
from ottla.server.registry import serves
from ottla.server.room_ahead import make_room_ahead
from ottla.server.turns import TURN_SECONDS, Turns, work_in_thread
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.records.compression import Codec
from ottla.wire.records.header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    unpack_producer,
)

if TYPE_CHECKING:
    from ottla.log_store.verification import Verification
    from ottla.server.transactions.producing import TransactionalProduce

_TOPIC_IDS_SINCE = 13
_ZSTD_SINCE = 7
_ADMIN_CLIENT_ID = "__admin_client"
_TO_COME = PartitionProduceResponse()

# The batch, and where in which list its answer goes.
_Costly = tuple[TopicProduceData, PartitionProduceData, list[PartitionProduceResponse], int]

# Opened batches may need 128 MiB each while they are looked at, and decompressing more of them than there are
# processors gains nothing.
_OPENING = OwnThreads("opening", 2)


class _Produce:
    """One request on its way through the partitions it names."""

    __slots__ = (
        "_context",
        "_now_ms",
        "_request",
        "_transaction",
        "costly",
        "failures",
        "flushes",
        "response",
    )

    def __init__(self, context: RequestContext, request: ProduceRequest) -> None:
        self._context = context
        self._request = request
        self._now_ms = context.broker.now_ms()
        self._transaction: TransactionalProduce | None = None
        self.failures: list[str] = []
        # Logs whose flush policy is due, and what is answered for them: the answer waits for their fsync.
        self.flushes: list[tuple[Log, PartitionProduceResponse]] = []
        # Batches that a worker thread must open before they can be appended, and where their answers go.
        self.costly: list[_Costly] = []
        self.response = ProduceResponse()

    def transaction_goes_on(self) -> bool:
        """Whether the transaction has written to each of the partitions before, so that nobody needs to be asked."""
        producer: tuple[int, int] | None = None
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                records = data.records
                if (
                    records is None
                    or len(records) < HEADER_SIZE
                    or not records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_BIT
                ):
                    continue
                found = unpack_producer(records)
                if found != producer and producer is not None:
                    return False
                producer = found
                try:
                    partition = self._find(topic, data.index)
                except KafkaError:
                    continue  # the append reports it
                entry = partition.log.producers.producers.get(found[0])
                if entry is None or not entry.has_ongoing_txn(found[1]):
                    return False
        return True

    def without_room(self) -> list[tuple[Log, int]]:
        """The logs for which room should be made before, and for how much."""
        found = []
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                if data.records is not None:
                    with suppress(KafkaError):  # the append reports it
                        log = self._find(topic, data.index).log
                        file = log.segments[-1].file
                        if file.size + len(data.records) > file.room_mark:
                            found.append((log, len(data.records)))
        return found

    def begin_transaction(self) -> tuple[TransactionalProduce, Iterator[None]]:
        """With the steps that find out what the coordinator must be asked about."""
        from ottla.server.transactions.producing import (
            TransactionalProduce,  # few brokers need it at their start
        )

        self._transaction = TransactionalProduce(self._context, self._request)
        return self._transaction, self._transaction.begin(self._find)

    def run_only(self, topic: TopicProduceData, data: PartitionProduceData) -> None:
        """Append to the only partition, if that takes no more than a moment."""
        try:
            answer = self._append_partition(topic, data)
        except CostlyBatch:
            answers = [_TO_COME]
            self.costly.append((topic, data, answers, 0))
        except KafkaError as error:
            answers = [self._failed(topic, data.index, error)]
        else:
            answers = [answer]
        self.response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, answers))

    def run(self) -> Iterator[None]:
        """Append everything that takes no more than a moment; pauses before each partition but the first."""
        is_first = True
        for topic in self._request.topic_data:
            response = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            self.response.responses.append(response)
            answers = response.partition_responses
            for data in topic.partition_data:
                if not is_first:
                    yield
                is_first = False
                try:
                    answers.append(self._append_partition(topic, data))
                except CostlyBatch:
                    self.costly.append((topic, data, answers, len(answers)))
                    answers.append(_TO_COME)
                except KafkaError as error:
                    answers.append(self._failed(topic, data.index, error))

    async def run_costly(self) -> None:
        """Append the rest, each batch after a worker thread has opened and checked it."""
        for topic, data, answers, slot in self.costly:
            try:
                rules = self._find(topic, data.index).log.rules
                batch = await _OPENING.run(
                    prepare_client_batch, memoryview(data.records or b""), rules, self._now_ms
                )
                partition = self._find(topic, data.index)  # it may have been deleted meanwhile
                self._now_ms = self._context.broker.now_ms()
                verification = self._verification_of(partition) if batch.is_transactional else None
                result = partition.append_prepared(batch, self._now_ms, verification)
                answers[slot] = self._appended(partition, result)
            except KafkaError as error:
                answers[slot] = self._failed(topic, data.index, error)

    def answer(self) -> ProduceResponse | None:
        """What the client gets: nothing if it wants no answer."""
        if self._request.acks != 0:
            return self.response
        if self.failures:
            # Nothing else can tell a client that expects no answer, as in Apache Kafka.
            summary = ", ".join(self.failures[:5])
            raise CloseConnection(
                f"produce with acks=0 failed client_id={self._context.client_id!r} {summary}"
            )
        return None

    def _append_partition(
        self, topic: TopicProduceData, data: PartitionProduceData
    ) -> PartitionProduceResponse:
        partition = self._find(topic, data.index)
        if data.records is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "the partition's records are missing")
        records = memoryview(data.records)
        if self._check_batch(records):
            verification = self._verification_of(partition)
            result = partition.append(records, self._now_ms, verification=verification)
        else:
            result = partition.append(records, self._now_ms)
        return self._appended(partition, result)

    def _verification_of(self, partition: Partition) -> Verification | None:
        return None if self._transaction is None else self._transaction.verification_of(partition)

    def _appended(self, partition: Partition, result: AppendResult) -> PartitionProduceResponse:
        response = PartitionProduceResponse(
            index=partition.index,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
        )
        if result.flush_due:
            self.flushes.append((partition.log, response))
        return response

    def _failed(self, topic: TopicProduceData, index: int, error: KafkaError) -> PartitionProduceResponse:
        self.failures.append(f"{topic.name or topic.topic_id.hex()}-{index}: {error.code.name}")
        return refused(index, error)

    def _find(self, topic: TopicProduceData, index: int) -> Partition:
        context = self._context
        table = context.broker.partitions
        if context.api_version >= _TOPIC_IDS_SINCE:
            partition = table.by_id(topic.topic_id, index)
        else:
            partition = table.by_name(topic.name, index)
        if self._request.acks not in (-1, 0, 1):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if is_internal_topic(partition.topic) and context.client_id != _ADMIN_CLIENT_ID:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {partition.topic}"
            )
        return partition

    def _check_batch(self, records: memoryview) -> bool:
        """Whether it belongs to a transaction. Raises KafkaError if such a batch may not come this way."""
        if len(records) < HEADER_SIZE:
            return False  # the log refuses it with its reason
        attributes = records[ATTRIBUTES_POSITION + 1]  # the low byte of two has all that is asked here
        if attributes & CODEC_MASK == Codec.ZSTD and self._context.api_version < _ZSTD_SINCE:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "Produce requests below version 7 cannot carry zstd"
            )
        if attributes & TRANSACTIONAL_BIT:
            # Judged by the batch, not by what the request says of itself (CVE-2018-17196).
            if self._request.transactional_id is None:
                raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            return True
        return False

    def refuse(self, error: KafkaError) -> None:
        """The same error for every partition."""
        for topic in self._request.topic_data:
            answers = [self._failed(topic, data.index, error) for data in topic.partition_data]
            self.response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, answers))


def refused(index: int, error: KafkaError) -> PartitionProduceResponse:
    """What a client learns of a batch that was not appended."""
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
            for batch_index, message in getattr(error, "record_errors", ())
        ],
        error_message=error.detail,
    )


async def _flush(produce: _Produce) -> None:
    for log, answer in produce.flushes:
        try:
            await trio.to_thread.run_sync(log.flush)
        except KafkaError as error:
            answer.error_code = error.code
            answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
            answer.error_message = error.detail


async def _go_on(produce: _Produce, steps: Iterator[None]) -> ProduceResponse | None:
    """Take the steps that are left in turns with other connections, then do what takes long."""
    await _take_in_turns(steps)
    return await _do_what_takes_long(produce)


async def _do_what_takes_long(produce: _Produce) -> ProduceResponse | None:
    await produce.run_costly()
    answer = produce.answer()
    await _flush(produce)
    return answer


async def _take_in_turns(steps: Iterator[None]) -> None:
    async with Turns() as turns:
        for _ in steps:
            await turns.rest()


async def _make_room_then_append(
    produce: _Produce, without_room: Sequence[tuple[Log, int]]
) -> ProduceResponse | None:
    async with trio.open_nursery() as nursery:
        for log, size in without_room:
            nursery.start_soon(make_room_ahead, log, size)
    return await _go_on(produce, produce.run())


async def _ask_then_append(produce: _Produce, transaction: TransactionalProduce) -> ProduceResponse | None:
    await transaction.ask()
    return await _go_on(produce, produce.run())


async def _begin_then_append(produce: _Produce) -> ProduceResponse | None:
    """The same for very many partitions, which are looked at in turns, too."""
    if not await work_in_thread(produce.transaction_goes_on):
        transaction, steps = produce.begin_transaction()
        try:
            await _take_in_turns(steps)
        except KafkaError as error:
            produce.refuse(error)
            return produce.answer()
        if transaction.must_ask:
            # One step, however many there are: in a pass of its own, between turns.
            await trio.lowlevel.checkpoint()
            await transaction.ask()
            await trio.lowlevel.checkpoint()
    return await _go_on(produce, produce.run())


@serves(ProduceRequest)
def handle_produce(context: RequestContext, request: ProduceRequest):  # type: ignore[no-untyped-def]
    """Append every partition's batch; wait only for batches that take long to open, for the flush policy, for room on
    the disk, for a coordinator that has to wait, and where there are so many that others must have their turn."""
    produce = _Produce(context, request)
    if request.transactional_id is not None and context.has_many_elements:
        return _begin_then_append(produce)
    if request.transactional_id is not None and not produce.transaction_goes_on():
        transaction, steps = produce.begin_transaction()
        try:
            for _ in steps:
                pass
        except KafkaError as error:
            produce.refuse(error)
            return produce.answer()
        if transaction.must_ask and not transaction.ask_at_once():
            return _ask_then_append(produce, transaction)
    # Very many partitions get little each, and to look at them takes a while.
    without_room = () if context.has_many_elements else produce.without_room()
    if without_room:
        return _make_room_then_append(produce, without_room)
    topics = request.topic_data
    if len(topics) == 1 and len(topics[0].partition_data) == 1:  # as most have
        produce.run_only(topics[0], topics[0].partition_data[0])
        return _do_what_takes_long(produce) if produce.costly or produce.flushes else produce.answer()
    turn_ends = perf_counter() + TURN_SECONDS
    steps = produce.run()
    for _ in steps:
        if perf_counter() > turn_ends:
            return _go_on(produce, steps)
    if produce.costly or produce.flushes:
        return _do_what_takes_long(produce)
    return produce.answer()
