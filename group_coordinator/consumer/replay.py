"""Records of consumer groups folded into groups: the only way they change.

A tombstone of something unknown is ignored: after compaction it may be all that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final

from ottla.group_coordinator.consumer.member import (
    LEAVE_EPOCH,
    NOTHING,
    ClassicMember,
    ConsumerGroupMember,
    Held,
    MemberState,
)
from ottla.group_coordinator.consumer.resolved import ResolvedRegex
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.group import Group
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.records.consumer_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)
from ottla.group_coordinator.records.consumer_group import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from ottla.wire.dataclass import replace
from ottla.wire.schema import Message

Groups = MutableMapping[str, Group]


def apply_consumer_record(groups: Groups, record: CoordinatorRecord) -> None:
    """Fold one record of a type in `CONSUMER_RECORDS` into the groups."""
    key: Any = record.key
    group = groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if record.value is None:
            return
        # A group of another kind under this id was made for offsets, which are in front of it in the log.
        group = groups[key.group_id] = ConsumerGroup(key.group_id)
    if isinstance(key, ConsumerGroupMetadataKey) and record.value is None:
        del groups[key.group_id]
        return
    CONSUMER_RECORDS[type(key)](group, key, record.value)


def _apply_group(
    group: ConsumerGroup, _: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue
) -> None:
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _apply_partition_metadata(
    group: ConsumerGroup,
    _: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_partition_metadata_record = value is not None


def _apply_member(
    group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    classic = None
    if value.classic_member_metadata is not None:
        classic = ClassicMember(
            value.classic_member_metadata.session_timeout_ms,
            tuple((each.name, each.metadata) for each in value.classic_member_metadata.supported_protocols),
        )
    old = group.members.get(key.member_id, ConsumerGroupMember(key.member_id))
    group.put_member(
        replace(
            old,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=classic,
        )
    )


def _apply_target_epoch(
    group: ConsumerGroup,
    _: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = -1 if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _apply_target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = {
            each.topic_id: frozenset(each.partitions) for each in value.topic_partitions
        }


def _apply_current_assignment(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    old = group.members.get(key.member_id)
    if value is not None:
        group.put_member(
            replace(
                old or ConsumerGroupMember(key.member_id),
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=MemberState.of(value.state),
                assigned=_held(value.assigned_partitions, value.member_epoch),
                pending_revocation=_held(value.partitions_pending_revocation, value.member_epoch),
            )
        )
    elif old is not None:
        group.put_member(
            replace(
                old,
                member_epoch=LEAVE_EPOCH,
                previous_member_epoch=LEAVE_EPOCH,
                assigned=NOTHING,
                pending_revocation=NOTHING,
            )
        )


def _apply_regex(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.resolved_regexes.pop(key.regular_expression, None)
    else:
        group.resolved_regexes[key.regular_expression] = ResolvedRegex(
            frozenset(value.topics), value.version, value.timestamp
        )


def _held(topics: list[TopicPartitions], member_epoch: int) -> Held:
    """Kafka before 4.3 wrote no epochs of partitions: that of the member stands for them, if it is one."""
    held: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        held[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return held


CONSUMER_RECORDS: Final[Mapping[type[Message], Callable[[ConsumerGroup, Any, Any], None]]] = {
    ConsumerGroupMetadataKey: _apply_group,
    ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
    ConsumerGroupMemberMetadataKey: _apply_member,
    ConsumerGroupTargetAssignmentMetadataKey: _apply_target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _apply_target,
    ConsumerGroupCurrentMemberAssignmentKey: _apply_current_assignment,
    ConsumerGroupRegularExpressionKey: _apply_regex,
}
"""How each type of record, by the class of its key, changes a group."""
