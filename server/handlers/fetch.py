"""Fetch (1), versions 4-18: read record batches, waiting for them when there are too few.

The answer carries slices of log files; the connection sends them with sendfile.
- 7 incremental sessions (KIP-227), 9 leader epochs (KIP-320), 11 rack, 12 flexible and diverging epochs, 13 topic
  ids, 15 replica state, 16 leader hints, 17 directory ids, 18 high watermark of a follower.
- At least one whole batch is returned even when it is larger than the limits.
- read_committed never reads past the last stable offset; the aborted transactions are taken together with the
  data, also when the request has waited (KAFKA-5376).
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from ottla.server.context import RequestContext
from ottla.server.fetch_sessions import FetchedPartition, FetchPlan, PartitionKey, TopicKey
from ottla.server.parked import Parked
from ottla.server.partition import AppendWaiter, Partition
from ottla.server.registry import serves
from ottla.wire.dataclass import dataclass, field
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

_TOPIC_IDS_SINCE = 13
_REPLICA_STATE_SINCE = 15
_READ_COMMITTED = 1
_CONSUMER_REPLICA_ID = -1
_PARTITIONS_PER_TURN = 200


@dataclass(slots=True)
class _ReadOutcome:
    """What one pass over the partitions found, as far as it has come."""

    rows: list[tuple[FetchedPartition, PartitionData]] = field(default_factory=list)
    size_bytes: int = 0
    must_answer: bool = False


class _Fetch:
    """One request: its plan, its limits and its passes over the partitions."""

    __slots__ = (
        "_context",
        "_max_bytes",
        "_min_bytes",
        "_plan",
        "_read_committed",
        "_replica_id",
        "_request",
    )

    def __init__(self, context: RequestContext, request: FetchRequest, plan: FetchPlan) -> None:
        self._context = context
        self._request = request
        self._plan = plan
        self._max_bytes = min(request.max_bytes, context.broker.limits.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._read_committed = request.isolation_level == _READ_COMMITTED
        self._replica_id = (
            request.replica_state.replica_id
            if context.api_version >= _REPLICA_STATE_SINCE
            else request.replica_id
        )

    def read(self) -> _ReadOutcome:
        """One pass, at once."""
        outcome = _ReadOutcome()
        for wanted in self._plan.partitions:
            self._read_into(outcome, wanted)
        return outcome

    async def read_in_turns(self) -> _ReadOutcome:
        """One pass over very many partitions, with the loop free for others now and then."""
        outcome = _ReadOutcome()
        for count, wanted in enumerate(self._plan.partitions, 1):
            self._read_into(outcome, wanted)
            if count % _PARTITIONS_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
        return outcome

    def _read_into(self, outcome: _ReadOutcome, wanted: FetchedPartition) -> None:
        size = outcome.size_bytes
        try:
            data = self._read_partition(wanted, self._max_bytes - size, at_least_one=size == 0)
            if data.records is not None:
                outcome.size_bytes += len(data.records)
            if data.diverging_epoch.end_offset >= 0:
                outcome.must_answer = True
        except KafkaError as error:
            outcome.must_answer = True
            data = _failed(wanted.partition, error.code)
        outcome.rows.append((wanted, data))

    def is_enough(self, outcome: _ReadOutcome) -> bool:
        """Whether to answer with this at once."""
        return outcome.must_answer or outcome.size_bytes >= self._min_bytes

    def _find(self, wanted: FetchedPartition) -> Partition:
        table = self._context.broker.partitions
        if isinstance(wanted.topic, str):
            return table.by_name(wanted.topic, wanted.partition)
        return table.by_id(wanted.topic, wanted.partition)

    def _read_partition(self, wanted: FetchedPartition, limit: int, at_least_one: bool) -> PartitionData:
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
            wanted.fetch_offset, min(wanted.max_bytes, max(limit, 0)), upto=upto, at_least_one=at_least_one
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

    def answer(self, outcome: _ReadOutcome, time_is_up: bool) -> FetchResponse | None:
        """What has been read, unless more is to be waited for."""
        if time_is_up or self._context.broker.stopping or self.is_enough(outcome):
            return self.respond(outcome)
        return None

    def watched(self) -> list[set[AppendWaiter]]:
        """Where to leave word in order to hear of changes to the partitions."""
        found = []
        for wanted in self._plan.partitions:
            try:
                partition = self._find(wanted)
            except KafkaError:
                continue  # the read reports it
            found.append(partition.committed_waiters if self._read_committed else partition.waiters)
        return found

    def respond(self, outcome: _ReadOutcome) -> FetchResponse:
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


class _ParkedFetch(Parked):
    """A Fetch that waits on all its partitions until there is enough."""

    def __init__(self, fetch: _Fetch, max_wait_seconds: float) -> None:
        super().__init__(max_wait_seconds)
        self._fetch = fetch
        self._watched: list[set[AppendWaiter]] = []
        self.notify: Callable[[], None] = lambda: None

    def watch(self, wake: Callable[[], None]) -> None:
        self.notify = wake
        self._watched = self._fetch.watched()
        for waiters in self._watched:
            waiters.add(self)

    def close(self) -> None:
        for waiters in self._watched:
            waiters.discard(self)
        self._watched = []

    def answer(self, *, time_is_up: bool) -> FetchResponse | None:
        return self._fetch.answer(self._fetch.read(), time_is_up)


async def _wait_in_turns(fetch: _Fetch, max_wait_seconds: float) -> FetchResponse:
    """The same for very many partitions, which are read in turns with other work.

    The word is left before each pass, the first one too: this coroutine may begin some time after it was made, a pass
    may take turns, and nothing appended meanwhile must be missed.
    """
    deadline = trio.current_time() + max_wait_seconds
    parked = _ParkedFetch(fetch, max_wait_seconds)
    while True:
        changed = trio.Event()
        parked.watch(changed.set)
        try:
            response = fetch.answer(await fetch.read_in_turns(), trio.current_time() >= deadline)
            if response is not None:
                return response
            with trio.move_on_at(deadline):
                await changed.wait()
        finally:
            parked.close()


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


def _named_partitions(request: FetchRequest, uses_topic_ids: bool) -> list[FetchedPartition]:
    return [
        FetchedPartition(
            topic.topic_id if uses_topic_ids else topic.topic,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]


def _forgotten_partitions(request: FetchRequest, uses_topic_ids: bool) -> list[PartitionKey]:
    return [
        (topic.topic_id if uses_topic_ids else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


@serves(FetchRequest)
def handle_fetch(context: RequestContext, request: FetchRequest):  # type: ignore[no-untyped-def]
    """Answer at once when there is enough to send; park otherwise. Very many partitions are read in turns."""
    broker = context.broker
    uses_topic_ids = context.api_version >= _TOPIC_IDS_SINCE
    try:
        plan = broker.fetch_sessions.plan(
            request.session_id,
            request.session_epoch,
            _named_partitions(request, uses_topic_ids),
            _forgotten_partitions(request, uses_topic_ids),
            uses_topic_ids,
            broker.now_ms(),
        )
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    fetch = _Fetch(context, request, plan)
    if len(plan.partitions) > _PARTITIONS_PER_TURN:
        return _wait_in_turns(fetch, request.max_wait_ms / 1000)
    outcome = fetch.read()
    waits_ms = request.max_wait_ms if plan.partitions else 0
    return fetch.answer(outcome, waits_ms <= 0) or _ParkedFetch(fetch, waits_ms / 1000)
