"""OffsetDelete (47), version 0: forget offsets of topics that a group no longer subscribes to."""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


@serves(OffsetDeleteRequest)
async def handle_offset_delete(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete what exists; refuse partitions that do not."""
    known: list[OffsetDeleteRequestTopic] = []
    results: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in request.topics:
        found = context.broker.image.topics_by_name.get(topic.name)
        existing = found.partitions if found is not None else {}
        valid = [each for each in topic.partitions if each.partition_index in existing]
        if valid:
            known.append(OffsetDeleteRequestTopic(topic.name, valid))
        results[topic.name] = OffsetDeleteResponseTopic(
            topic.name,
            [
                OffsetDeleteResponsePartition(each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                for each in topic.partitions
                if each.partition_index not in existing
            ],
        )
    request.topics = known
    try:
        response: OffsetDeleteResponse = await context.broker.groups.ask(context, request.group_id, request)
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
    if response.error_code == ErrorCode.NONE:
        for answered in response.topics:
            results[answered.name].partitions += answered.partitions
        response.topics = list(results.values())
    return response
