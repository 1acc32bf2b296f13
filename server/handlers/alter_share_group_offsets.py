"""AlterShareGroupOffsets (91), version 0: have a share group without members read from other offsets on (KIP-932).

A group that does not exist yet is made by it.
"""

from __future__ import annotations

from ottla.group_coordinator.effects import ShareStateInitialized
from ottla.group_coordinator.share_state.shard import SharePartitionKey
from ottla.server.context import RequestContext
from ottla.server.groups.protocols import check_share_protocol
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

_FIRST_GROUP_EPOCH = 1


@serves(AlterShareGroupOffsetsRequest)
async def handle_alter_share_group_offsets(
    context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """Give every partition a new state."""
    try:
        check_share_protocol(context.broker)
        epoch = _state_epoch(context, request.group_id)
    except KafkaError as error:
        return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
    done: dict[bytes, frozenset[int]] = {}
    responses = [await _alter(context, request.group_id, epoch, topic, done) for topic in request.topics]
    if done:
        context.broker.share.partitions.forget(lambda key: key.group_id == request.group_id)
        event = ShareStateInitialized(request.group_id, done, creates_group=True)
        context.broker.groups.happen(request.group_id, event)
    return AlterShareGroupOffsetsResponse(responses=responses)


def _state_epoch(context: RequestContext, group_id: str) -> int:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    shard = context.broker.groups.shard_of(group_id)
    if group_id not in shard.groups:
        return _FIRST_GROUP_EPOCH
    group = shard.share_group(group_id)
    group.check_delete()
    return group.group_epoch


async def _alter(
    context: RequestContext,
    group_id: str,
    epoch: int,
    wanted: AlterShareGroupOffsetsRequestTopic,
    done: dict[bytes, frozenset[int]],
) -> AlterShareGroupOffsetsResponseTopic:
    answer = AlterShareGroupOffsetsResponseTopic(topic_name=wanted.topic_name)
    topic = context.broker.image.topics_by_name.get(wanted.topic_name)
    if topic is not None:
        answer.topic_id = topic.topic_id
    for partition in wanted.partitions:
        row = AlterShareGroupOffsetsResponsePartition(partition_index=partition.partition_index)
        answer.partitions.append(row)
        try:
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            key = SharePartitionKey(group_id, topic.topic_id, partition.partition_index)
            await context.broker.share.states.initialize(key, epoch, partition.start_offset)
        except KafkaError as error:
            row.error_code, row.error_message = error.code, error.message
        else:
            done[topic.topic_id] = done.get(topic.topic_id, frozenset()) | {partition.partition_index}
    return answer
