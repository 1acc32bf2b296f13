"""A consumer's Fetch of one partition, read and answered by compiled functions; see quick_answers.

Most of what consumers send is of this kind: without a session, as librdkafka does, or with a session of one partition.
At anything out of the ordinary nothing has happened, and the request goes the usual way. One that waits may meet the
extraordinary later: then the usual way is taken from there, by ottla.server.fetching.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ottla.log_store.page_cache import NotInMemory
from ottla.native import speed
from ottla.server.fetch_sessions import (
    FINAL_EPOCH,
    SESSIONLESS_ID,
    FetchedPartition,
    FetchPlan,
    FetchSession,
    TopicKey,
)
from ottla.server.fetching import READ_COMMITTED, Fetch, FetchWishes
from ottla.server.output import COPY_BELOW_BYTES
from ottla.server.parked import ParkedAnswer
from ottla.wire.api_keys import ApiKey
from ottla.wire.errors import KafkaError
from ottla.wire.headers import encode_response_header
from ottla.wire.messages.fetch import FetchResponse
from ottla.wire.schema import encoder

if TYPE_CHECKING:
    from ottla.server.broker import Broker
    from ottla.server.output import Outbox
    from ottla.server.partition import AppendWaiter, Partition
    from ottla.wire.chunks import FileSlice

_TOPIC_IDS_SINCE: Final = 13
_FLEXIBLE_SINCE: Final = 12
_BEHIND_RECORDS: Final = bytes(3)  # no tagged fields: of the partition, of the topic and of the answer
_NO_EPOCH: Final = -1
_NO_FILE: Final = -1


class _Unusual(Exception):
    """Somebody who knows every case has to answer this."""


class _QuickFetch(ParkedAnswer):
    """One request."""

    __slots__ = (
        "_broker",
        "_correlation_id",
        "_isolation_level",
        "_max_bytes",
        "_min_bytes",
        "_partition",
        "_session",
        "_version",
        "_wanted",
        "max_wait_seconds",
        "notify",
    )

    notify: Callable[[], None]

    def __init__(
        self,
        broker: Broker,
        partition: Partition,
        session: FetchSession | None,
        wanted: FetchedPartition,
        numbers: tuple[int, int, int, int, int, int],
    ) -> None:
        self._broker = broker
        self._partition = partition
        self._session = session
        self._wanted = wanted
        self._version, self._correlation_id, max_wait_ms, min_bytes, max_bytes, self._isolation_level = (
            numbers
        )
        self._max_bytes = limit = max(0, min(max_bytes, broker.limits.fetch_max_bytes))
        self._min_bytes = min(min_bytes, limit)
        self.max_wait_seconds = max_wait_ms / 1000

    def watch(self, wake: Callable[[], None]) -> None:
        self.notify = wake
        self._waiters().add(self)

    def close(self) -> None:
        self._waiters().discard(self)

    def _waiters(self) -> set[AppendWaiter]:
        partition = self._partition
        is_committed = self._isolation_level == READ_COMMITTED
        return partition.committed_waiters if is_committed else partition.waiters

    def try_to_answer(self, outbox: Outbox, *, time_is_up: bool) -> bool:
        by_name, by_id = self._broker.partitions.indexes
        wanted = self._wanted
        table: Any = by_name if isinstance(wanted.topic, str) else by_id
        try:
            if table.get(wanted.topic, {}).get(wanted.partition) is not self._partition:
                raise _Unusual  # it was deleted, or its directory has failed
            return self.answer(outbox, time_is_up, only_cached=False)  # it has been looked at before
        except _Unusual:
            return self._answer_as_usual(outbox, time_is_up)

    def answer(self, outbox: Outbox, time_is_up: bool, *, only_cached: bool) -> bool:
        """Put the answer into the outbox, if there is enough to tell. Raises _Unusual, and has changed nothing then, if
        it is not one of ours, or what it asks for has to be read from the disk and it is not to wait for that."""
        partition, wanted, session = self._partition, self._wanted, self._session
        log = partition.log
        high_watermark, stable_offset = log.high_watermark, log.last_stable_offset
        is_committed = self._isolation_level == READ_COMMITTED
        if _NO_EPOCH != wanted.current_leader_epoch != partition.leader_epoch:
            raise _Unusual
        try:
            found = log.read(
                wanted.fetch_offset,
                min(wanted.max_bytes, self._max_bytes),
                upto=stable_offset if is_committed else high_watermark,
                at_least_one=True,
                only_cached=only_cached,
            )
        except (KafkaError, NotInMemory):
            raise _Unusual from None
        records = found.records
        size = 0 if records is None else records.length
        if size < self._min_bytes and not time_is_up and not self._broker.stopping:
            return False
        try:
            aborted = is_committed and size and log.aborted_transactions(wanted.fetch_offset, found)
        except KafkaError:
            raise _Unusual from None
        if aborted:
            raise _Unusual
        topic: TopicKey | None = wanted.topic
        session_id = SESSIONLESS_ID
        if session is not None:
            session_id = session.session_id
            if not wanted.has_news(0, size > 0, high_watermark, log.log_start_offset):
                topic = None
        numbers = (
            self._version,
            self._correlation_id,
            session_id,
            topic,
            wanted.partition,
            high_watermark,
            stable_offset,
            log.log_start_offset,
            self._isolation_level,
            size,
        )
        _add_frame(outbox, numbers, records)
        return True

    def _answer_as_usual(self, outbox: Outbox, time_is_up: bool) -> bool:
        session = self._session
        plan = FetchPlan([self._wanted], session, incremental=session is not None)
        fetch = Fetch(
            self._broker, plan, FetchWishes(self._max_bytes, self._min_bytes, self._isolation_level)
        )
        response = fetch.answer(fetch.read(), time_is_up)
        if response is None:
            return False
        chunks: list[Any] = [encode_response_header(ApiKey.FETCH, self._version, self._correlation_id)]
        encoder(FetchResponse, self._version)(response, chunks)
        outbox.add_frame(chunks)
        return True


def _add_frame(outbox: Outbox, numbers: tuple[Any, ...], records: FileSlice | None) -> None:
    assert speed is not None
    if records is None:
        outbox.add_bytes(speed.fetch_answer(*numbers, _NO_FILE, 0))
        return
    if records.length < COPY_BELOW_BYTES:
        frame = speed.fetch_answer(*numbers, records.file.fileno(), records.position)
        if frame is not None:
            outbox.add_bytes(frame)
            return
    head = speed.fetch_answer(*numbers, _NO_FILE, 0)
    is_flexible = numbers[0] >= _FLEXIBLE_SINCE
    outbox.add_chunks([head, records, _BEHIND_RECORDS] if is_flexible else [head, records])


def quick_fetch(broker: Broker) -> Callable[[memoryview, Outbox], ParkedAnswer | bool]:
    """The quick answer to a Fetch."""
    assert speed is not None
    read_fetch = speed.read_fetch
    by_name, by_id = broker.partitions.indexes
    sessions = broker.fetch_sessions

    def answer(frame: memoryview, outbox: Outbox) -> ParkedAnswer | bool:
        found = read_fetch(frame)
        if found is None:
            return False
        *_, session_id, session_epoch, topic, index, leader_epoch, offset, max_bytes = found
        uses_topic_ids = found[0] >= _TOPIC_IDS_SINCE
        session = None
        if session_id == SESSIONLESS_ID and session_epoch == FINAL_EPOCH:
            if topic is None:
                return False
            wanted = FetchedPartition(topic, index, offset, max_bytes, leader_epoch, _NO_EPOCH)
        else:
            known = sessions.of_one_partition(session_id, session_epoch, uses_topic_ids)
            if known is None:
                return False
            session, wanted = known
            if topic is not None:
                if wanted.topic != topic or wanted.partition != index:
                    return False
                wanted.take_request(
                    FetchedPartition(topic, index, offset, max_bytes, leader_epoch, _NO_EPOCH)
                )
            elif wanted.last_fetched_epoch != _NO_EPOCH:
                return False
        partitions: Any = by_id if uses_topic_ids else by_name
        partition = partitions.get(wanted.topic, {}).get(wanted.partition)
        if partition is None:
            return False
        fetch = _QuickFetch(broker, partition, session, wanted, found[:6])
        try:
            is_answered = fetch.answer(outbox, fetch.max_wait_seconds <= 0, only_cached=True)
        except _Unusual:
            return False
        if session is not None:
            sessions.go_on(session, broker.now_ms())
        return is_answered or fetch

    return answer
