"""Reading the partitions of a Fetch: one pass after the other, until there is enough for an answer.

- At least one whole batch is returned even when it is larger than the limits.
- read_committed never reads past the last stable offset; the aborted transactions are taken together with the
  data, also when the request has waited (KAFKA-5376).
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from ottla.log_store.page_cache import NotInMemory
from ottla.server.cold_reads import ColdReads
from ottla.server.fetch_sessions import FetchedPartition, FetchPlan, TopicKey
from ottla.server.partition import AppendWaiter, Partition
from ottla.server.turns import Turns
from ottla.wire.dataclass import dataclass, field
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from ottla.server.broker import Broker

READ_COMMITTED = 1
_PARTITIONS_PER_TURN = 100
_CONSUMER_REPLICA_ID = -1


class FetchWishes(NamedTuple):
    """What a request says for all its partitions."""

    max_bytes: int
    min_bytes: int
    isolation_level: int
    replica_id: int = _CONSUMER_REPLICA_ID


@dataclass(slots=True)
class ReadOutcome:
    """What one pass over the partitions found, as far as it has come."""

    rows: list[tuple[FetchedPartition, PartitionData]] = field(default_factory=list)
    size_bytes: int = 0
    must_answer: bool = False


class Fetch:
    """One request: its plan, its limits and its passes over the partitions."""

    __slots__ = ("_broker", "_max_bytes", "_min_bytes", "_plan", "_read_committed", "_replica_id")

    def __init__(self, broker: Broker, plan: FetchPlan, wishes: FetchWishes) -> None:
        self._broker = broker
        self._plan = plan
        self._max_bytes = min(wishes.max_bytes, broker.limits.fetch_max_bytes)
        self._min_bytes = min(wishes.min_bytes, self._max_bytes)
        self._read_committed = wishes.isolation_level == READ_COMMITTED
        self._replica_id = wishes.replica_id

    @property
    def has_many_partitions(self) -> bool:
        """So that they are to be read in turns."""
        return len(self._plan.partitions) > _PARTITIONS_PER_TURN

    def read(self, *, only_cached: bool = False) -> ReadOutcome:
        """One pass, at once. Raises NotInMemory if it is not to wait for the disk and would have to."""
        outcome = ReadOutcome()
        for wanted in self._plan.partitions:
            self._read_into(outcome, wanted, only_cached)
        return outcome

    async def read_in_turns(self) -> ReadOutcome:
        """One pass over very many partitions, or what is not in memory, with the loop free for others now and then."""
        outcome = ReadOutcome()
        async with Turns() as turns:
            for wanted in self._plan.partitions:
                try:
                    self._read_into(outcome, wanted, only_cached=True)
                except NotInMemory:
                    await turns.outside(self._read_cold_into(outcome, wanted))
                if perf_counter() > turns.ends:
                    await turns.rest()
        return outcome

    async def _read_cold_into(self, outcome: ReadOutcome, wanted: FetchedPartition) -> None:
        cold = ColdReads()
        while True:
            try:
                return self._read_into(outcome, wanted, cold.only_cached)
            except NotInMemory as missing:
                await cold.bring(missing)

    def _read_into(self, outcome: ReadOutcome, wanted: FetchedPartition, only_cached: bool) -> None:
        size = outcome.size_bytes
        try:
            data = self._read_partition(
                wanted, self._max_bytes - size, at_least_one=size == 0, only_cached=only_cached
            )
            if data.records is not None:
                outcome.size_bytes += len(data.records)
            if data.diverging_epoch.end_offset >= 0:
                outcome.must_answer = True
        except KafkaError as error:
            outcome.must_answer = True
            data = _failed(wanted.partition, error.code)
        outcome.rows.append((wanted, data))

    def is_enough(self, outcome: ReadOutcome) -> bool:
        """Whether to answer with this at once."""
        return outcome.must_answer or outcome.size_bytes >= self._min_bytes

    def _find(self, wanted: FetchedPartition) -> Partition:
        table = self._broker.partitions
        if isinstance(wanted.topic, str):
            return table.by_name(wanted.topic, wanted.partition)
        return table.by_id(wanted.topic, wanted.partition)

    def _read_partition(
        self, wanted: FetchedPartition, limit: int, *, at_least_one: bool, only_cached: bool
    ) -> PartitionData:
        partition = self._find(wanted)
        if self._replica_id >= 0:
            # No other broker replicates from this one; a client that says it is one must not be believed.
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        log = partition.log
        data = PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=[] if self._read_committed else None,
            records=b"",
        )
        if wanted.last_fetched_epoch >= 0 and self._diverges(partition, wanted, data):
            return data
        if self._read_committed:
            upto = log.last_stable_offset
        elif self._replica_id == _CONSUMER_REPLICA_ID:
            upto = log.high_watermark
        else:
            upto = log.log_end_offset
        found = log.read(
            wanted.fetch_offset,
            min(wanted.max_bytes, max(limit, 0)),
            upto=upto,
            at_least_one=at_least_one,
            only_cached=only_cached,
        )
        if found.records is not None:
            data.records = found.records
            if self._read_committed:
                data.aborted_transactions = [
                    AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                    for aborted in log.aborted_transactions(wanted.fetch_offset, found)
                ]
        return data

    @staticmethod
    def _diverges(partition: Partition, wanted: FetchedPartition, data: PartitionData) -> bool:
        epoch, end_offset = partition.log.end_offset_for_epoch(wanted.last_fetched_epoch)
        if epoch < 0 or end_offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
            data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
            return True
        return False

    def answer(self, outcome: ReadOutcome, time_is_up: bool) -> FetchResponse | None:
        """What has been read, unless more is to be waited for."""
        if time_is_up or self._broker.stopping or self.is_enough(outcome):
            return self.respond(outcome)
        return None

    @property
    def partitions(self) -> list[FetchedPartition]:
        """What is to be read."""
        return self._plan.partitions

    def waiters_of(self, wanted: FetchedPartition) -> set[AppendWaiter] | None:
        """Where to leave word in order to hear of changes to a partition; None if it is not there."""
        try:
            partition = self._find(wanted)
        except KafkaError:
            return None  # the read reports it
        return partition.committed_waiters if self._read_committed else partition.waiters

    def respond(self, outcome: ReadOutcome) -> FetchResponse:
        response = FetchResponse(session_id=self._plan.session_id)
        session = self._plan.session
        topics: dict[TopicKey, FetchableTopicResponse] = {}
        for wanted, data in outcome.rows:
            has_records = data.records is not None and len(data.records) > 0
            if session is not None:
                news = wanted.has_news(
                    data.error_code, has_records, data.high_watermark, data.log_start_offset
                )
                if self._plan.incremental and not news and data.diverging_epoch.end_offset < 0:
                    continue
                if has_records:
                    session.move_to_end(wanted.key)
            topic = topics.get(wanted.topic)
            if topic is None:
                topic = topics[wanted.topic] = _topic_response(wanted.topic)
                response.responses.append(topic)
            topic.partitions.append(data)
        return response


def _failed(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=[],  # not null, as it is for uncommitted reads that work
        records=b"",
    )


def _topic_response(topic: TopicKey) -> FetchableTopicResponse:
    if isinstance(topic, str):
        return FetchableTopicResponse(topic=topic)
    return FetchableTopicResponse(topic_id=topic)
