"""The records of consumer groups, made from values of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.member import ConsumerGroupMember, Held
from ottla.group_coordinator.consumer.resolved import ResolvedRegex
from ottla.group_coordinator.records import CoordinatorRecord, tombstone
from ottla.group_coordinator.records.consumer_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from ottla.group_coordinator.records.consumer_group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)

if TYPE_CHECKING:
    from ottla.group_coordinator.consumer.state import ConsumerGroup


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group reaches an epoch with topics of this hash."""
    return CoordinatorRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_metadata(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Who a member is and what it subscribes to."""
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols
            ],
        )
    return CoordinatorRecord(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
            subscribed_topic_regex=member.topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=classic,
        ),
    )


def regex(group_id: str, expression: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    """What a regular expression matches."""
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression),
        ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
        ),
    )


def regex_tombstone(group_id: str, expression: str) -> CoordinatorRecord:
    """Nobody subscribes to a regular expression any more."""
    return tombstone(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression))


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Remove what Kafka before 4.1 kept where the hash of the topics is now."""
    return tombstone(ConsumerGroupPartitionMetadataKey(group_id=group_id))


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """The target assignment of an epoch is complete."""
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def target_of_member(group_id: str, member_id: str, target: Partitions) -> CoordinatorRecord:
    """What a member shall have."""
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id]))
                for topic_id in sorted(target)
            ]
        ),
    )


def current_assignment(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """What a member has, and in which epoch and state it is."""
    return CoordinatorRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            assigned_partitions=_topic_partitions(member.assigned),
            partitions_pending_revocation=_topic_partitions(member.pending_revocation),
        ),
    )


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Remove a member: what it has, what it shall have, what it is. The order matters to Kafka's replay."""
    return [
        tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
        tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
        tombstone(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def group_tombstones(group: ConsumerGroup, renamed: dict[str, str] | None = None) -> list[CoordinatorRecord]:
    """Remove a group. `renamed` has the new ids of members that earlier records of the same batch replaced."""
    group_id = group.group_id
    member_ids = [(renamed or {}).get(member_id, member_id) for member_id in group.members]
    return [
        *(
            tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=each))
            for each in member_ids
        ),
        *(
            tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=each))
            for each in member_ids
        ),
        tombstone(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(
            tombstone(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=each))
            for each in member_ids
        ),
        *(regex_tombstone(group_id, expression) for expression in group.resolved_regexes),
        partition_metadata_tombstone(group_id),
        tombstone(ConsumerGroupMetadataKey(group_id=group_id)),
    ]


def _topic_partitions(held: Held) -> list[TopicPartitions]:
    entries = []
    for topic_id in sorted(held):
        epochs = held[topic_id]
        partitions = sorted(epochs)
        entries.append(
            TopicPartitions(
                topic_id=topic_id,
                partitions=partitions,
                assignment_epochs=[epochs[partition] for partition in partitions],
            )
        )
    return entries
