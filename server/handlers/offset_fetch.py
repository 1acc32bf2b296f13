"""OffsetFetch (9), versions 1-10: how far groups have read.

- 1 has no error for the group, so every partition carries it. 2 has one, and null topics for all of them.
- 7 can insist on stable offsets: UNSTABLE_OFFSET_COMMIT for those that an open transaction may change (KIP-447).
- 8 asks for several groups. 9 lets members of consumer groups say who they are.
- 10 names topics by id: UNKNOWN_TOPIC_ID where there is none; among all topics those without an id are left out.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_GROUP_ERROR_SINCE = 2
_SEVERAL_GROUPS_SINCE = 8
_TOPIC_IDS_SINCE = 10
_INVALID_OFFSET = -1


@serves(OffsetFetchRequest)
def handle_offset_fetch(
    context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Coroutine[Any, Any, OffsetFetchResponse]:
    """Look the offsets of every group up; those of several groups in turns."""
    if context.api_version >= _SEVERAL_GROUPS_SINCE:
        if len(request.groups) > 1:
            return _fetch_several(context, request)
        return OffsetFetchResponse(
            groups=[_fetch(context, request.require_stable, group) for group in request.groups]
        )
    topics = request.topics
    group = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in topics
        ],
    )
    return _for_one_group(context.api_version, group, _fetch(context, request.require_stable, group))


async def _fetch_several(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    fetch = partial(_fetch, context, request.require_stable)
    return OffsetFetchResponse(groups=await map_in_turns(fetch, request.groups))


def _fetch(
    context: RequestContext, require_stable: bool, group: OffsetFetchRequestGroup
) -> OffsetFetchResponseGroup:
    by_id = context.api_version >= _TOPIC_IDS_SINCE
    image = context.broker.image
    unknown: list[OffsetFetchRequestTopics] = []
    if by_id and group.topics is not None:
        for topic in group.topics:
            found = image.topics_by_id.get(topic.topic_id)
            topic.name = "" if found is None else found.name
        unknown = [topic for topic in group.topics if not topic.name]
        group.topics = [topic for topic in group.topics if topic.name]
    try:
        shard = context.broker.groups.shard_of(group.group_id)
        response = shard.fetch_offsets(group, require_stable=require_stable)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
    if by_id and group.topics is None:
        for answered in response.topics:
            found = image.topics_by_name.get(answered.name)
            if found is not None:
                answered.topic_id = found.topic_id
        response.topics = [topic for topic in response.topics if topic.name in image.topics_by_name]
    response.topics += [_failed(topic, ErrorCode.UNKNOWN_TOPIC_ID) for topic in unknown]
    return response


def _failed(topic: OffsetFetchRequestTopics, error: int) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic.name,
        topic.topic_id,
        [
            OffsetFetchResponsePartitions(index, _INVALID_OFFSET, error_code=error)
            for index in topic.partition_indexes
        ],
    )


def _for_one_group(
    version: int, asked: OffsetFetchRequestGroup, group: OffsetFetchResponseGroup
) -> OffsetFetchResponse:
    """The answer as it was before there could be several groups."""
    error = group.error_code
    topics = group.topics
    if error and version < _GROUP_ERROR_SINCE:
        topics = [_failed(topic, error) for topic in asked.topics or ()]
    return OffsetFetchResponse(
        error_code=error,
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.metadata,
                        each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ],
    )
