"""DescribeTopicPartitions (75): partitions of topics, page by page with a cursor (KIP-966).

The Java admin client asks this before it falls back to Metadata.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import (
    BOOL,
    INT16,
    INT32,
    STRING,
    UUID,
    Message,
    array,
    field,
    message,
    struct,
    structure,
)
from ottla.wire.uuids import Uuid


@structure
class TopicRequest:
    name: str = field(STRING)


@structure
class Cursor:
    topic_name: str = field(STRING)
    partition_index: int = field(INT32)


@message(api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, kind="request", versions=(0, 0), flexible=0)
class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = field(INT32, default=2000)
    cursor: Cursor | None = struct(Cursor, nullable="0+", default=None)


@structure
class DescribeTopicPartitionsResponsePartition:
    error_code: int = field(INT16)
    partition_index: int = field(INT32)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32, default=-1, ignorable=True)
    replica_nodes: list[int] = array(INT32)
    isr_nodes: list[int] = array(INT32)
    eligible_leader_replicas: list[int] | None = array(INT32, nullable="0+", default=None)
    last_known_elr: list[int] | None = array(INT32, nullable="0+", default=None)
    offline_replicas: list[int] = array(INT32, ignorable=True)


@structure
class DescribeTopicPartitionsResponseTopic:
    error_code: int = field(INT16)
    name: str | None = field(STRING, nullable="0+")
    topic_id: Uuid = field(UUID, ignorable=True)
    is_internal: bool = field(BOOL, ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = field(INT32, default=-0x80000000)


@message(api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, kind="response", versions=(0, 0), flexible=0)
class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int = field(INT32, ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = struct(Cursor, nullable="0+", default=None)
