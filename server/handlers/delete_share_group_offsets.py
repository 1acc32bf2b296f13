"""DeleteShareGroupOffsets (92), version 0: have a share group without members forget topics (KIP-932)."""

from __future__ import annotations

from ottla.group_coordinator.effects import ShareStateRemoved
from ottla.group_coordinator.share.state import StateMetadata
from ottla.server.context import RequestContext
from ottla.server.groups.protocols import check_share_protocol
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


@serves(DeleteShareGroupOffsetsRequest)
async def handle_delete_share_group_offsets(
    context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """Delete the states of every topic."""
    try:
        check_share_protocol(context.broker)
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = context.broker.groups.shard_of(request.group_id).share_group(request.group_id)
        group.check_delete()
    except KafkaError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
    responses = [
        await _delete(context, request.group_id, topic.topic_name, group.state_metadata)
        for topic in request.topics
    ]
    return DeleteShareGroupOffsetsResponse(responses=responses)


async def _delete(
    context: RequestContext, group_id: str, name: str, metadata: StateMetadata
) -> DeleteShareGroupOffsetsResponseTopic:
    answer = DeleteShareGroupOffsetsResponseTopic(topic_name=name)
    try:
        topic = context.broker.image.topics_by_name.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        kept = metadata.initialized_partitions.get(topic.topic_id)
        if kept is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."
            )
        await context.broker.share.forget(group_id, {topic.topic_id: kept})
        event = ShareStateRemoved(group_id, frozenset({topic.topic_id}))
        context.broker.groups.happen(group_id, event)
        answer.topic_id = topic.topic_id
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, error.message
    return answer
