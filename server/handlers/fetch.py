"""Fetch (1), versions 4-18: read record batches, waiting for them when there are too few.

The answer carries slices of log files; the connection sends them with sendfile.
- 7 incremental sessions (KIP-227), 9 leader epochs (KIP-320), 11 rack, 12 flexible and diverging epochs, 13 topic
  ids, 15 replica state, 16 leader hints, 17 directory ids, 18 high watermark of a follower.
How partitions are read is in ottla.server.fetching; consumers that ask for one partition are mostly answered by
ottla.server.quick_fetch, which is imported here so that it is there from the first Fetch on.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from ottla.server import quick_fetch  # noqa: F401
from ottla.server.context import RequestContext
from ottla.server.fetch_sessions import FetchedPartition, PartitionKey
from ottla.server.fetching import Fetch, FetchWishes
from ottla.server.parked import Parked
from ottla.server.partition import AppendWaiter
from ottla.server.registry import serves
from ottla.wire.errors import KafkaError
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

_TOPIC_IDS_SINCE = 13
_REPLICA_STATE_SINCE = 15


class _ParkedFetch(Parked):
    """A Fetch that waits on all its partitions until there is enough."""

    def __init__(self, fetch: Fetch, max_wait_seconds: float) -> None:
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


async def _wait_in_turns(fetch: Fetch, max_wait_seconds: float) -> FetchResponse:
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
    has_replica_state = context.api_version >= _REPLICA_STATE_SINCE
    replica_id = request.replica_state.replica_id if has_replica_state else request.replica_id
    wishes = FetchWishes(request.max_bytes, request.min_bytes, request.isolation_level, replica_id)
    fetch = Fetch(broker, plan, wishes)
    if fetch.has_many_partitions:
        return _wait_in_turns(fetch, request.max_wait_ms / 1000)
    outcome = fetch.read()
    waits_ms = request.max_wait_ms if plan.partitions else 0
    return fetch.answer(outcome, waits_ms <= 0) or _ParkedFetch(fetch, waits_ms / 1000)
