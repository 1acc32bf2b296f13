"""Records of share groups (KIP-932) in `__consumer_offsets`."""

from __future__ import annotations

from ottla.wire.schema import INT8, INT32, INT64, STRING, UUID, Message, array, field, record, structure
from ottla.wire.uuids import Uuid


@record(api_key=10, versions=(0, 0))
class ShareGroupMemberMetadataKey(Message):
    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


@record(api_key=10, versions=(0, 0), flexible=0)
class ShareGroupMemberMetadataValue(Message):
    rack_id: str | None = field(STRING, nullable="0+")
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = array(STRING)


@record(api_key=11, versions=(0, 0))
class ShareGroupMetadataKey(Message):
    group_id: str = field(STRING, "0")


@record(api_key=11, versions=(0, 0), flexible=0)
class ShareGroupMetadataValue(Message):
    epoch: int = field(INT32)
    metadata_hash: int = field(INT64)


@record(api_key=12, versions=(0, 0))
class ShareGroupTargetAssignmentMetadataKey(Message):
    group_id: str = field(STRING, "0")


@record(api_key=12, versions=(0, 0), flexible=0)
class ShareGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = field(INT32)
    assignment_timestamp: int = field(INT64, tag=0, ignorable=True)


@record(api_key=13, versions=(0, 0))
class ShareGroupTargetAssignmentMemberKey(Message):
    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


@structure
class TopicPartition:
    topic_id: Uuid = field(UUID)
    partitions: list[int] = array(INT32)


@record(api_key=13, versions=(0, 0), flexible=0)
class ShareGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TopicPartition] = array(TopicPartition)


@record(api_key=14, versions=(0, 0))
class ShareGroupCurrentMemberAssignmentKey(Message):
    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


@structure
class TopicPartitions:
    topic_id: Uuid = field(UUID)
    partitions: list[int] = array(INT32)


@record(api_key=14, versions=(0, 0), flexible=0)
class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = field(INT32)
    previous_member_epoch: int = field(INT32)
    state: int = field(INT8)
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


@record(api_key=15, versions=(0, 0))
class ShareGroupStatePartitionMetadataKey(Message):
    group_id: str = field(STRING, "0")


@structure
class TopicPartitionsInfo:
    topic_id: Uuid = field(UUID)
    topic_name: str = field(STRING)
    partitions: list[int] = array(INT32)


@structure
class TopicInfo:
    topic_id: Uuid = field(UUID)
    topic_name: str = field(STRING)


@record(api_key=15, versions=(0, 0), flexible=0)
class ShareGroupStatePartitionMetadataValue(Message):
    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = array(TopicInfo)
