"""DescribeProducers (61), version 0: what partitions remember of their idempotent producers (KIP-664)."""

from __future__ import annotations

from ottla.log_store.producer_entry import ProducerEntry
from ottla.metadata.topic_names import topic_name_error
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.turns import Turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)


def _state(entry: ProducerEntry) -> ProducerState:
    txn_start = entry.current_txn_first_offset
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=-1 if txn_start is None else txn_start,
    )


async def _partition(context: RequestContext, turns: Turns, topic: str, index: int) -> PartitionResponse:
    try:
        partition = context.broker.partitions.by_name(topic, index)
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code)
    response = PartitionResponse(partition_index=index)
    for entry in list(partition.log.producers.producers.values()):
        response.active_producers.append(_state(entry))
        await turns.rest()
    return response


async def _topic(context: RequestContext, turns: Turns, wanted: TopicRequest) -> TopicResponse:
    invalid = topic_name_error(wanted.name)
    if invalid is not None:
        error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
    elif wanted.name not in context.broker.image.topics_by_name:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = KafkaError(code, code.message)
    else:
        partitions = [
            await _partition(context, turns, wanted.name, index) for index in wanted.partition_indexes
        ]
        return TopicResponse(name=wanted.name, partitions=partitions)
    partitions = [
        PartitionResponse(partition_index=index, error_code=error.code, error_message=error.detail)
        for index in wanted.partition_indexes
    ]
    return TopicResponse(name=wanted.name, partitions=partitions)


@serves(DescribeProducersRequest)
async def handle_describe_producers(
    context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe the producers of every partition named, in turns."""
    async with Turns() as turns:
        topics = [await _topic(context, turns, topic) for topic in request.topics]
    return DescribeProducersResponse(topics=topics)
