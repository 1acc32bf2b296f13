"""AlterPartitionReassignments (45), versions 0-1: move partitions to other brokers, or give that up (KIP-455).

There is one broker, so a partition can only be told to stay where it is, which is done at once; a list of replicas with
any other broker in it is refused as Kafka refuses brokers that are not registered. Null gives a move up: there is
none, NO_REASSIGNMENT_IN_PROGRESS. Version 1 can forbid another number of replicas (KIP-860), which the one broker
cannot have anyway.
"""

from __future__ import annotations

from functools import partial

from ottla.metadata.controller.placement import Placement
from ottla.metadata.image import MetadataImage
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


@serves(AlterPartitionReassignmentsRequest)
async def handle_alter_partition_reassignments(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Hold each partition against the image, in turns."""
    image = context.broker.image
    placement = Placement(image, context.broker.node_id)
    response = AlterPartitionReassignmentsResponse(
        error_message=None, allow_replication_factor_change=request.allow_replication_factor_change
    )
    for topic in request.topics:
        answers = await map_in_turns(partial(_answer, image, placement, topic.name), topic.partitions)
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=answers))
    return response


def _answer(
    image: MetadataImage, placement: Placement, topic: str, partition: ReassignablePartition
) -> ReassignablePartitionResponse:
    answer = ReassignablePartitionResponse(partition_index=partition.partition_index, error_message=None)
    try:
        _check(image, placement, topic, partition)
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, error.detail
    return answer


def _check(image: MetadataImage, placement: Placement, topic: str, partition: ReassignablePartition) -> None:
    index, replicas = partition.partition_index, partition.replicas
    known = image.topics_by_name.get(topic)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
    present = known.partitions.get(index)
    if present is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}")
    if replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    placement.check_manual(replicas, None)
    if tuple(replicas) != present.replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{topic}-{index} is on {list(present.replicas)} and cannot be moved: this cluster has one broker.",
        )
