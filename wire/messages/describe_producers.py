"""DescribeProducers (61): the producers a partition keeps state of (KIP-664)."""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, Message, array, field, message, structure


@structure
class TopicRequest:
    name: str = field(STRING)
    partition_indexes: list[int] = array(INT32)


@message(api_key=ApiKey.DESCRIBE_PRODUCERS, kind="request", versions=(0, 0), flexible=0)
class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = array(TopicRequest)


@structure
class ProducerState:
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT32)
    last_sequence: int = field(INT32, default=-1)
    last_timestamp: int = field(INT64, default=-1)
    coordinator_epoch: int = field(INT32)
    current_txn_start_offset: int = field(INT64, default=-1)


@structure
class PartitionResponse:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    active_producers: list[ProducerState] = array(ProducerState)


@structure
class TopicResponse:
    name: str = field(STRING)
    partitions: list[PartitionResponse] = array(PartitionResponse)


@message(api_key=ApiKey.DESCRIBE_PRODUCERS, kind="response", versions=(0, 0), flexible=0)
class DescribeProducersResponse(Message):
    throttle_time_ms: int = field(INT32)
    topics: list[TopicResponse] = array(TopicResponse)
