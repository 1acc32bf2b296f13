"""The records of consumer groups, made from values of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.group_coordinator.assigned_group_records import AssignedGroupRecords
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


_RECORDS: Final = AssignedGroupRecords(
    group_key=ConsumerGroupMetadataKey,
    group_value=ConsumerGroupMetadataValue,
    member_key=ConsumerGroupMemberMetadataKey,
    target_epoch_key=ConsumerGroupTargetAssignmentMetadataKey,
    target_epoch_value=ConsumerGroupTargetAssignmentMetadataValue,
    target_key=ConsumerGroupTargetAssignmentMemberKey,
    target_value=ConsumerGroupTargetAssignmentMemberValue,
    current_key=ConsumerGroupCurrentMemberAssignmentKey,
    topic_partition=TopicPartition,
)
group_epoch: Final = _RECORDS.group_epoch
target_epoch: Final = _RECORDS.target_epoch
target_of_member: Final = _RECORDS.target_of_member
member_tombstones: Final = _RECORDS.member_tombstones


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


def group_tombstones(group: ConsumerGroup, renamed: dict[str, str] | None = None) -> list[CoordinatorRecord]:
    """Remove a group. `renamed` has the new ids of members that earlier records of the same batch replaced."""
    group_id = group.group_id
    member_ids = [(renamed or {}).get(member_id, member_id) for member_id in group.members]
    return _RECORDS.group_tombstones(
        group_id,
        member_ids,
        *(
            ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression)
            for expression in group.resolved_regexes
        ),
        ConsumerGroupPartitionMetadataKey(group_id=group_id),
    )


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
