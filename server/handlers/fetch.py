"""Fetch (1), versions 4-18: read record batches, waiting for them when there are too few.

The answer carries slices of log files; the connection sends them with sendfile.
- 7 incremental sessions (KIP-227), 9 leader epochs (KIP-320), 11 rack, 12 flexible and diverging epochs, 13 topic
  ids, 15 replica state, 16 leader hints, 17 directory ids, 18 high watermark of a follower.
How partitions are read is in ottla.server.fetching; consumers that ask for one partition are mostly answered by
ottla.server.quick_fetch, which is imported here so that it is there from the first Fetch on.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import trio

from ottla.log_store.page_cache import NotInMemory
from ottla.server import quick_fetch  # noqa: F401
from ottla.server.context import RequestContext
from ottla.server.fetch_sessions import FetchedPartition, PartitionKey
from ottla.server.fetching import Fetch, FetchWishes
from ottla.server.parked import Parked
from ottla.server.partition import AppendWaiter
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns, work_in_thread
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
        for wanted in self._fetch.partitions:
            self._watch(wanted)

    async def watch_in_turns(self, wake: Callable[[], None]) -> None:
        """The same for very many partitions."""
        self.notify = wake
        await map_in_turns(self._watch, self._fetch.partitions)

    def _watch(self, wanted: FetchedPartition) -> None:
        waiters = self._fetch.waiters_of(wanted)
        if waiters is not None:
            waiters.add(self)
            self._watched.append(waiters)

    def close(self) -> None:
        for waiters in self._watched:
            waiters.discard(self)
        self._watched = []

    def answer(self, *, time_is_up: bool) -> FetchResponse | None:
        return self._fetch.answer(self._fetch.read(), time_is_up)


async def _wait_in_turns(fetch: Fetch, max_wait_seconds: float) -> FetchResponse:
    """The same for very many partitions, and for what is not in memory, which are read in turns with other work.

    The word is left before each pass, the first one too: this coroutine may begin some time after it was made, a pass
    may take turns, and nothing appended meanwhile must be missed.
    """
    deadline = trio.current_time() + max_wait_seconds
    parked = _ParkedFetch(fetch, max_wait_seconds)
    while True:
        changed = trio.Event()
        try:
            await parked.watch_in_turns(changed.set)
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
    """Answer at once when there is enough to send; park otherwise. Very many partitions, and what is not in memory, are
    read in turns."""
    if context.has_many_elements:
        return _fetch_many(context, request)
    return _fetch(context, request, *_named_and_forgotten(context, request))


async def _fetch_many(context: RequestContext, request: FetchRequest) -> FetchResponse:
    named, forgotten = await work_in_thread(_named_and_forgotten, context, request)
    answer = _fetch(context, request, named, forgotten)
    return answer if isinstance(answer, FetchResponse) else await answer


def _named_and_forgotten(
    context: RequestContext, request: FetchRequest
) -> tuple[list[FetchedPartition], list[PartitionKey]]:
    uses_topic_ids = context.api_version >= _TOPIC_IDS_SINCE
    return _named_partitions(request, uses_topic_ids), _forgotten_partitions(request, uses_topic_ids)


def _fetch(
    context: RequestContext,
    request: FetchRequest,
    named: list[FetchedPartition],
    forgotten: list[PartitionKey],
) -> FetchResponse | Parked | Coroutine[Any, Any, FetchResponse]:
    broker = context.broker
    uses_topic_ids = context.api_version >= _TOPIC_IDS_SINCE
    try:
        plan = broker.fetch_sessions.plan(
            request.session_id,
            request.session_epoch,
            named,
            forgotten,
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
    try:
        outcome = fetch.read(only_cached=True)
    except NotInMemory:
        return _wait_in_turns(fetch, request.max_wait_ms / 1000)
    waits_ms = request.max_wait_ms if plan.partitions else 0
    return fetch.answer(outcome, waits_ms <= 0) or _ParkedFetch(fetch, waits_ms / 1000)
