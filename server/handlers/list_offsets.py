"""ListOffsets (2), versions 1-11: the offset of a time, or of the log's ends.

Special timestamps: -1 latest (last stable offset when isolation_level is read_committed, 2+), -2 earliest, -3 the
record with the largest timestamp (7+), -4 earliest local (8+), -5 latest tiered (9+), -6 earliest pending upload
(11+). Without tiered storage -4 is -2, and -5 and -6 have no offset. One that the version does not know gets
UNSUPPORTED_VERSION. No match: offset -1, timestamp -1. 4+ carries leader epochs (KIP-320).

Consumers (replica id -1) see what is committed; a replica or debugger (-2) sees the whole log. A partition named
twice gets one answer, INVALID_REQUEST.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import trio

from ottla.log_store.log import Log
from ottla.log_store.page_cache import NotInMemory
from ottla.log_store.timestamps import BatchSearch, TimestampOffset
from ottla.server.cold_reads import have_read
from ottla.server.context import RequestContext
from ottla.server.log_ends import EARLIEST, LATEST, end_of_log, last_fetchable_offset
from ottla.server.partition import Partition
from ottla.server.registry import serves
from ottla.server.turns import Turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_KNOWN_SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_LEADER_EPOCH_SINCE = 4
_RECORDS_PER_TURN = 1000
_BYTES_PER_TURN = 16 * 1024
_ISOLATION_LEVELS = (0, 1)


class _ListOffsets:
    """One request on its way through the partitions it names."""

    __slots__ = ("_context", "_request")

    def __init__(self, context: RequestContext, request: ListOffsetsRequest) -> None:
        self._context = context
        self._request = request

    async def run(self) -> ListOffsetsResponse:
        """Look every partition up, with the loop free for others now and then."""
        answered: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
        times_named = Counter(
            (topic.name, wanted.partition_index)
            for topic in self._request.topics
            for wanted in topic.partitions
        )
        async with Turns() as turns:
            for topic in self._request.topics:
                rows = answered.setdefault(topic.name, {})
                for wanted in topic.partitions:
                    duplicate = times_named[topic.name, wanted.partition_index] > 1
                    rows[wanted.partition_index] = await self._answer(turns, topic.name, wanted, duplicate)
                    await turns.rest()
        return _response(answered)

    def answer_of_one(self) -> ListOffsetsResponse | None:
        """The answer where an end of one partition is asked for, as Spark does before every poll; None for the rest."""
        topics = self._request.topics
        if len(topics) != 1 or len(topics[0].partitions) != 1:
            return None
        topic, wanted = topics[0].name, topics[0].partitions[0]
        if wanted.timestamp not in (LATEST, EARLIEST):
            return None
        try:
            partition = self._find(topic, wanted, duplicate=False)
            row = self._row(wanted, *self._end_of(partition, wanted.timestamp))
        except KafkaError as error:
            row = _failed(wanted, error)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(topic, [row])])

    async def _answer(
        self, turns: Turns, topic: str, wanted: ListOffsetsPartition, duplicate: bool
    ) -> ListOffsetsPartitionResponse:
        try:
            partition = self._find(topic, wanted, duplicate)
            return self._row(wanted, *await self._look_up(turns, partition, wanted.timestamp))
        except KafkaError as error:
            return _failed(wanted, error)

    def _find(self, topic: str, wanted: ListOffsetsPartition, duplicate: bool) -> Partition:
        if duplicate or self._request.isolation_level not in _ISOLATION_LEVELS:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if wanted.timestamp < 0 and self._context.api_version < _KNOWN_SINCE.get(wanted.timestamp, 0x7FFF):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        partition = self._context.broker.partitions.by_name(topic, wanted.partition_index)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        return partition

    def _row(
        self, wanted: ListOffsetsPartition, timestamp: int, offset: int, leader_epoch: int
    ) -> ListOffsetsPartitionResponse:
        return ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index,
            timestamp=timestamp,
            offset=offset,
            leader_epoch=leader_epoch if self._context.api_version >= _LEADER_EPOCH_SINCE else -1,
        )

    async def _look_up(self, turns: Turns, partition: Partition, timestamp: int) -> tuple[int, int, int]:
        if timestamp in (LATEST, EARLIEST, EARLIEST_LOCAL):
            return self._end_of(partition, timestamp)
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return -1, -1, -1
        found = await _search(turns, partition.log, None if timestamp == MAX_TIMESTAMP else timestamp)
        if found is None or found.offset >= self._last_fetchable(partition):
            return -1, -1, -1
        return found.timestamp, found.offset, found.leader_epoch

    def _end_of(self, partition: Partition, timestamp: int) -> tuple[int, int, int]:
        request = self._request
        return -1, *end_of_log(partition, timestamp, request.replica_id, request.isolation_level)

    def _last_fetchable(self, partition: Partition) -> int:
        return last_fetchable_offset(partition, self._request.replica_id, self._request.isolation_level)


async def _search(turns: Turns, log: Log, timestamp: int | None) -> TimestampOffset | None:
    for step in log.steps_by_time(timestamp, only_cached=True):
        if isinstance(step, NotInMemory):
            await turns.outside(have_read(step.bring))
        elif step is not None and (found := await _run(turns, step)) is not None:
            return found
        await turns.rest()
    return None


async def _run(turns: Turns, search: BatchSearch) -> TimestampOffset | None:
    # A batch is looked through record by record, which takes too long for the loop when they are many or large.
    view = search.view
    if view.records_count > _RECORDS_PER_TURN or view.size_in_bytes > _BYTES_PER_TURN:
        return await turns.outside(trio.to_thread.run_sync(search.run))
    return search.run()


def _failed(wanted: ListOffsetsPartition, error: KafkaError) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=error.code)


def _response(answered: dict[str, dict[int, ListOffsetsPartitionResponse]]) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name, partitions=list(rows.values()))
            for name, rows in answered.items()
            if rows
        ]
    )


@serves(ListOffsetsRequest)
def handle_list_offsets(context: RequestContext, request: ListOffsetsRequest) -> Any:
    """Look every partition up; a coroutine unless that is done at once."""
    listing = _ListOffsets(context, request)
    return listing.answer_of_one() or listing.run()
