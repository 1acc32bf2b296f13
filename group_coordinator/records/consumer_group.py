"""Records of consumer groups (KIP-848) in `__consumer_offsets`: groups, members."""

from __future__ import annotations

from ottla.wire.schema import (
    BYTES,
    INT32,
    INT64,
    STRING,
    UUID,
    Message,
    array,
    field,
    record,
    struct,
    structure,
)
from ottla.wire.uuids import Uuid


@record(api_key=4, versions=(0, 0))
class ConsumerGroupPartitionMetadataKey(Message):
    group_id: str = field(STRING, "0")


@structure
class PartitionMetadata:
    partition: int = field(INT32)
    racks: list[str] = array(STRING)


@structure
class TopicMetadata:
    topic_id: Uuid = field(UUID)
    topic_name: str = field(STRING)
    num_partitions: int = field(INT32)
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)


@record(api_key=4, versions=(0, 0), flexible=0)
class ConsumerGroupPartitionMetadataValue(Message):
    topics: list[TopicMetadata] = array(TopicMetadata)


@record(api_key=5, versions=(0, 0))
class ConsumerGroupMemberMetadataKey(Message):
    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


@structure
class ClassicProtocol:
    name: str = field(STRING)
    metadata: bytes = field(BYTES)


@structure
class ClassicMemberMetadata:
    session_timeout_ms: int = field(INT32)
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


@record(api_key=5, versions=(0, 0), flexible=0)
class ConsumerGroupMemberMetadataValue(Message):
    instance_id: str | None = field(STRING, nullable="0+")
    rack_id: str | None = field(STRING, nullable="0+")
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = array(STRING)
    subscribed_topic_regex: str | None = field(STRING, nullable="0+")
    rebalance_timeout_ms: int = field(INT32, default=-1)
    server_assignor: str | None = field(STRING, nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, nullable="0+", tag=0
    )


@record(api_key=3, versions=(0, 0))
class ConsumerGroupMetadataKey(Message):
    group_id: str = field(STRING, "0")


@record(api_key=3, versions=(0, 0), flexible=0)
class ConsumerGroupMetadataValue(Message):
    epoch: int = field(INT32)
    metadata_hash: int = field(INT64, tag=0)


@record(api_key=16, versions=(0, 0))
class ConsumerGroupRegularExpressionKey(Message):
    group_id: str = field(STRING, "0")
    regular_expression: str = field(STRING, "0")


@record(api_key=16, versions=(0, 0), flexible=0)
class ConsumerGroupRegularExpressionValue(Message):
    topics: list[str] = array(STRING)
    version: int = field(INT64)
    timestamp: int = field(INT64)
