"""DescribeProducers (61), version 0: what partitions remember of their idempotent producers (KIP-664)."""

from __future__ import annotations

from ottla.log_store.producer_entry import ProducerEntry
from ottla.metadata.topic_names import topic_name_error
from ottla.server.context import RequestContext
from ottla.server.registry import serves
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


def _partition(context: RequestContext, topic: str, index: int) -> PartitionResponse:
    try:
        partition = context.broker.partitions.by_name(topic, index)
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code)
    entries = partition.log.producers.producers.values()
    return PartitionResponse(partition_index=index, active_producers=[_state(entry) for entry in entries])


def _topic(context: RequestContext, wanted: TopicRequest) -> TopicResponse:
    invalid = topic_name_error(wanted.name)
    if invalid is not None:
        error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
    elif wanted.name not in context.broker.image.topics_by_name:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = KafkaError(code, code.message)
    else:
        partitions = [_partition(context, wanted.name, index) for index in wanted.partition_indexes]
        return TopicResponse(name=wanted.name, partitions=partitions)
    partitions = [
        PartitionResponse(partition_index=index, error_code=error.code, error_message=error.detail)
        for index in wanted.partition_indexes
    ]
    return TopicResponse(name=wanted.name, partitions=partitions)


@serves(DescribeProducersRequest)
def handle_describe_producers(
    context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe the producers of every partition named."""
    return DescribeProducersResponse(topics=[_topic(context, topic) for topic in request.topics])
