"""DescribeShareGroupOffsets (90), versions 0-1: where share groups are in their partitions (KIP-932). 1 has the lag.

What has no state is at -1, which is no error.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.group_coordinator.share_state.shard import UNINITIALIZED, SharePartitionKey
from ottla.server.context import RequestContext
from ottla.server.groups.protocols import check_share_protocol
from ottla.server.registry import serves
from ottla.wire.errors import KafkaError
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)


@serves(DescribeShareGroupOffsetsRequest)
def handle_describe_share_group_offsets(
    context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """Describe every group."""
    return DescribeShareGroupOffsetsResponse(groups=[_describe(context, group) for group in request.groups])


def _describe(
    context: RequestContext, wanted: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    answer = DescribeShareGroupOffsetsResponseGroup(group_id=wanted.group_id)
    image = context.broker.image
    try:
        check_share_protocol(context.broker)
        if wanted.topics is not None:
            named = [(topic.topic_name, topic.partitions) for topic in wanted.topics]
        else:
            named = [
                (image.topics_by_id[topic_id].name, sorted(partitions))
                for topic_id, partitions in _initialized(context, wanted.group_id).items()
                if topic_id in image.topics_by_id
            ]
        answer.topics = [_topic(context, wanted.group_id, name, indexes) for name, indexes in named]
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, error.message
    return answer


def _initialized(context: RequestContext, group_id: str) -> dict[bytes, frozenset[int]]:
    shard = context.broker.groups.shard_of(group_id)
    try:
        return shard.share_group(group_id).state_metadata.initialized_partitions
    except KafkaError:
        return {}


def _topic(
    context: RequestContext, group_id: str, name: str, indexes: Iterable[int]
) -> DescribeShareGroupOffsetsResponseTopic:
    topic = context.broker.image.topics_by_name.get(name)
    if topic is None:
        unknown = [
            DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=UNINITIALIZED)
            for index in indexes
        ]
        return DescribeShareGroupOffsetsResponseTopic(topic_name=name, partitions=unknown)
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic.topic_id,
        partitions=[
            _partition(context, SharePartitionKey(group_id, topic.topic_id, index)) for index in indexes
        ],
    )


def _partition(context: RequestContext, key: SharePartitionKey) -> DescribeShareGroupOffsetsResponsePartition:
    answer = DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition, start_offset=UNINITIALIZED
    )
    try:
        state = context.broker.share.states.summary(key)
    except KafkaError:
        return answer
    if state is None:
        return answer
    answer.start_offset, answer.leader_epoch = state.start_offset, state.leader_epoch
    if state.start_offset == UNINITIALIZED or state.delivery_complete_count < 0:
        return answer
    try:
        end_offset = context.broker.partitions.by_id(key.topic_id, key.partition).log.high_watermark
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=key.partition, error_code=error.code, error_message=error.message
        )
    answer.lag = end_offset - state.start_offset - state.delivery_complete_count
    return answer
