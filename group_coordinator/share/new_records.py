"""The records of share groups in `__consumer_offsets`, made from values of this room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.records import CoordinatorRecord, tombstone
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


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group reaches an epoch with topics of this hash."""
    return CoordinatorRecord(
        ShareGroupMetadataKey(group_id=group_id),
        ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


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


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """The target assignment of an epoch is complete."""
    return CoordinatorRecord(
        ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def target_of_member(group_id: str, member_id: str, target: Partitions) -> CoordinatorRecord:
    """What a member shall have."""
    return CoordinatorRecord(
        ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id]))
                for topic_id in sorted(target)
            ]
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


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Remove a member: what it has, what it shall have, what it is. The order matters to Kafka's replay."""
    return [
        tombstone(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
        tombstone(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
        tombstone(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
    """Remove a group."""
    return [
        *(record for member_id in member_ids for record in member_tombstones(group_id, member_id)),
        tombstone(ShareGroupTargetAssignmentMetadataKey(group_id=group_id)),
        tombstone(ShareGroupStatePartitionMetadataKey(group_id=group_id)),
        tombstone(ShareGroupMetadataKey(group_id=group_id)),
    ]


def _topics(topics: Mapping[Uuid, TopicState]) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions))
        for topic_id, topic in sorted(topics.items())
    ]
