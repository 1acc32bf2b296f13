"""The records of share groups in `__consumer_offsets`, made from values of this room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.group_coordinator.assigned_group_records import AssignedGroupRecords
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartition,
    TopicPartitions,
    TopicPartitionsInfo,
)
from ottla.wire.uuids import Uuid

if TYPE_CHECKING:
    from ottla.group_coordinator.share.state import ShareGroupMember, StateMetadata, TopicState


_RECORDS: Final = AssignedGroupRecords(
    group_key=ShareGroupMetadataKey,
    group_value=ShareGroupMetadataValue,
    member_key=ShareGroupMemberMetadataKey,
    target_epoch_key=ShareGroupTargetAssignmentMetadataKey,
    target_epoch_value=ShareGroupTargetAssignmentMetadataValue,
    target_key=ShareGroupTargetAssignmentMemberKey,
    target_value=ShareGroupTargetAssignmentMemberValue,
    current_key=ShareGroupCurrentMemberAssignmentKey,
    topic_partition=TopicPartition,
)
group_epoch: Final = _RECORDS.group_epoch
target_epoch: Final = _RECORDS.target_epoch
target_of_member: Final = _RECORDS.target_of_member
member_tombstones: Final = _RECORDS.member_tombstones


def member_metadata(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """Who a member is and what it subscribes to."""
    return CoordinatorRecord(
        ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
        ),
    )


def current_assignment(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """What a member has, and in which epoch it is."""
    return CoordinatorRecord(
        ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            assigned_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=sorted(member.assigned[topic_id]))
                for topic_id in sorted(member.assigned)
            ],
        ),
    )


def state_metadata(group_id: str, metadata: StateMetadata) -> CoordinatorRecord:
    """Which share partitions have a state."""
    return CoordinatorRecord(
        ShareGroupStatePartitionMetadataKey(group_id=group_id),
        ShareGroupStatePartitionMetadataValue(
            initializing_topics=_topics(metadata.initializing),
            initialized_topics=_topics(metadata.initialized),
            deleting_topics=[
                TopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in sorted(metadata.deleting.items())
            ],
        ),
    )


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
    """Remove a group."""
    return _RECORDS.group_tombstones(
        group_id, member_ids, ShareGroupStatePartitionMetadataKey(group_id=group_id)
    )


def _topics(topics: Mapping[Uuid, TopicState]) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions))
        for topic_id, topic in sorted(topics.items())
    ]
