"""Records of the assignments of consumer groups (KIP-848): the target of the group, and what members hold."""

from __future__ import annotations

from ottla.wire.schema import INT8, INT32, INT64, STRING, UUID, Message, array, field, record, structure
from ottla.wire.uuids import Uuid


@record(api_key=6, versions=(0, 0))
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    group_id: str = field(STRING, "0")


@record(api_key=6, versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = field(INT32)
    assignment_timestamp: int = field(INT64, tag=0, ignorable=True)


@record(api_key=7, versions=(0, 0))
class ConsumerGroupTargetAssignmentMemberKey(Message):
    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


@structure
class TopicPartition:
    topic_id: Uuid = field(UUID)
    partitions: list[int] = array(INT32)


@record(api_key=7, versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TopicPartition] = array(TopicPartition)


@record(api_key=8, versions=(0, 0))
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


@structure
class TopicPartitions:
    topic_id: Uuid = field(UUID)
    partitions: list[int] = array(INT32)
    assignment_epochs: list[int] | None = array(INT32, nullable="0+", tag=0)


@record(api_key=8, versions=(0, 0), flexible=0)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = field(INT32)
    previous_member_epoch: int = field(INT32)
    state: int = field(INT8)
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions)
