"""OffsetForLeaderEpoch (23), versions 2-4: where an epoch ends in the log (KIP-279, KIP-320).

The answer is the largest epoch at or below the one asked for and the offset after its last record; -1 for both
when the log knows nothing of it. Consumers use it to notice that a log was truncated. 3 adds the replica id, which
changes nothing in the answer.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns
from ottla.wire.errors import KafkaError
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def _end_offset(context: RequestContext, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = context.broker.partitions.by_name(topic, wanted.partition)
        partition.check_leader_epoch(wanted.current_leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=wanted.partition, error_code=error.code)
    epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)


async def _in_turns(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        end_offsets = await map_in_turns(partial(_end_offset, context, topic.topic), topic.partitions)
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=end_offsets))
    return response


@serves(OffsetForLeaderEpochRequest)
def handle_offset_for_leader_epoch(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse | Coroutine[Any, Any, OffsetForLeaderEpochResponse]:
    """Look every epoch up."""
    if context.has_many_elements:
        return _in_turns(context, request)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_offset(context, topic.topic, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
