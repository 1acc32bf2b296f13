"""Transactions on the raw client, request by request, as clients of both versions make them.

With version 1 partitions and groups are added by requests of their own, as librdkafka and older Java clients do it.
With version 2 a Produce and a TxnOffsetCommit add them, and every EndTxn answers with the next epoch (KIP-890).
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.records import Record, build_batch, iter_batches, iter_records

TRANSACTION = 1
"""The type of coordinator that FindCoordinator is asked for."""

# A client asks again when it gets one of these.
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


class RawProducer:
    """A transactional producer. Every call returns the error code of its answer."""

    def __init__(self, raw: RawClient, transactional_id: str, version: int = 2) -> None:
        self.raw = raw
        self.transactional_id = transactional_id
        self.version = version
        self.producer_id = self.producer_epoch = -1
        self._sequences: Counter[tuple[str, int]] = Counter()

    def init(self, timeout_ms: int = 60_000) -> int:
        """Ask for the id until it is there: the coordinator may be loading, or an older transaction ending."""
        self.raw.send(
            FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.transactional_id]), 6
        )
        request = InitProducerIdRequest(self.transactional_id, timeout_ms)
        answer: Any = None

        def is_settled() -> bool:
            nonlocal answer
            answer = self.raw.send(request, 5)
            return answer.error_code not in NOT_YET

        eventually(is_settled, True)
        if answer.error_code == ErrorCode.NONE:
            self._become(answer.producer_id, answer.producer_epoch)
        return int(answer.error_code)

    def add(self, topic: str, *partitions: int) -> int:
        """AddPartitionsToTxn, which version 2 never sends."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(topic, list(partitions))],
        )
        (answered,) = self._patiently(request, 3, _added).results_by_topic_v3_and_below
        return max(int(each.partition_error_code) for each in answered.results_by_partition)

    def produce(self, topic: str, partition: int, *values: bytes) -> int:
        """One batch in the transaction."""
        sequence = self._sequences[topic, partition]
        now_ms = time.time_ns() // 1_000_000  # an older time would let retention take the records away
        records = [Record(number, now_ms, None, value, ()) for number, value in enumerate(values)]
        batch = build_batch(
            records,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(partition, batch)])
        request = ProduceRequest(self.transactional_id, acks=-1, timeout_ms=10_000, topic_data=[data])
        version = 12 if self.version == 2 else 11
        error = _produced(self._patiently(request, version, _produced))
        if error == ErrorCode.NONE:
            self._sequences[topic, partition] += len(values)
        return error

    def offsets(self, group: str, topic: str, partition: int, offset: int) -> int:
        """Commit an offset in the transaction."""
        if self.version == 1:
            added = AddOffsetsToTxnRequest(
                self.transactional_id, self.producer_id, self.producer_epoch, group
            )
            error = int(self._patiently(added, 3, _code).error_code)
            if error != ErrorCode.NONE:
                return error
        committed = TxnOffsetCommitRequestPartition(partition, offset, -1, "")
        request = TxnOffsetCommitRequest(
            self.transactional_id,
            group,
            self.producer_id,
            self.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(topic, [committed])],
        )
        answer = self._patiently(request, 5 if self.version == 2 else 3, _offset_committed)
        return _offset_committed(answer)

    def end(self, committed: bool) -> int:
        """Commit or abort; sequences start anew with a new epoch."""
        request = EndTxnRequest(self.transactional_id, self.producer_id, self.producer_epoch, committed)
        answer = self._patiently(request, 5 if self.version == 2 else 3, _code)
        if self.version == 2 and answer.error_code == ErrorCode.NONE:
            self._become(answer.producer_id, answer.producer_epoch)
        return int(answer.error_code)

    def state(self) -> str:
        """What DescribeTransactions says of it."""
        (state,) = self.raw.send(DescribeTransactionsRequest([self.transactional_id]), 0).transaction_states
        return str(state.transaction_state) if state.error_code == ErrorCode.NONE else ""

    def _become(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self._sequences.clear()

    def _patiently(self, request: Any, version: int, error_of: Any) -> Any:
        answer: Any = None

        def is_settled() -> bool:
            nonlocal answer
            answer = self.raw.send(request, version)
            return error_of(answer) not in NOT_YET

        eventually(is_settled, True)
        return answer


def read_committed(raw: RawClient, topic: str, partition: int) -> tuple[list[bytes | None], bool]:
    """The values that a consumer of committed records is left with, and whether no transaction is open."""
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 24)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 24,
        isolation_level=1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    (answered,) = raw.send(request, 11).responses
    (data,) = answered.partitions
    assert data.error_code == ErrorCode.NONE, data
    waiting = sorted((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
    aborted: set[int] = set()
    values: list[bytes | None] = []
    for batch in iter_batches(memoryview(bytes(data.records or b""))):
        if batch.base_offset >= data.last_stable_offset:
            break
        while waiting and waiting[0][0] <= batch.base_offset:
            aborted.add(waiting.pop(0)[1])
        if batch.is_control:
            aborted.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborted):
            values += [record.value for record in iter_records(batch)]
    return values, data.last_stable_offset == data.high_watermark


def _code(answer: Any) -> int:
    return int(answer.error_code)


def _added(answer: Any) -> int:
    (topic,) = answer.results_by_topic_v3_and_below
    return max(int(each.partition_error_code) for each in topic.results_by_partition)


def _produced(answer: Any) -> int:
    return int(answer.responses[0].partition_responses[0].error_code)


def _offset_committed(answer: Any) -> int:
    return int(answer.topics[0].partitions[0].error_code)
