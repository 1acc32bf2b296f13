"""Records of share groups folded into groups: the only way they change.

A tombstone of something unknown is ignored: after compaction it may be all that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final

from ottla.group_coordinator.consumer.member import LEAVE_EPOCH
from ottla.group_coordinator.group import Group
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
    TopicPartitionsInfo,
)
from ottla.group_coordinator.share.state import ShareGroup, ShareGroupMember, StateMetadata, TopicState
from ottla.wire.dataclass import replace
from ottla.wire.schema import Message
from ottla.wire.uuids import Uuid


def apply_share_record(groups: MutableMapping[str, Group], record: CoordinatorRecord, now_ms: int) -> None:
    """Fold one record of a type in `SHARE_RECORDS` into the groups."""
    key: Any = record.key
    group = groups.get(key.group_id)
    if not isinstance(group, ShareGroup):
        if record.value is None:
            return
        group = groups[key.group_id] = ShareGroup(key.group_id)
    if isinstance(key, ShareGroupMetadataKey) and record.value is None:
        del groups[key.group_id]
        return
    SHARE_RECORDS[type(key)](group, key, record.value, now_ms)


def _apply_group(
    group: ShareGroup, _: ShareGroupMetadataKey, value: ShareGroupMetadataValue, __: int
) -> None:
    group.group_epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _apply_member(
    group: ShareGroup, key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None, _: int
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    member = group.members.get(key.member_id, ShareGroupMember(key.member_id))
    group.put_member(
        replace(
            member,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
        )
    )


def _apply_target_epoch(
    group: ShareGroup,
    _: ShareGroupTargetAssignmentMetadataKey,
    value: ShareGroupTargetAssignmentMetadataValue | None,
    __: int,
) -> None:
    group.assignment_epoch = LEAVE_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _apply_target(
    group: ShareGroup,
    key: ShareGroupTargetAssignmentMemberKey,
    value: ShareGroupTargetAssignmentMemberValue | None,
    _: int,
) -> None:
    if value is None:
        group.target.pop(key.member_id, None)
    else:
        group.target[key.member_id] = {
            topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
        }


def _apply_current(
    group: ShareGroup,
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
    _: int,
) -> None:
    member = group.members.get(key.member_id)
    if value is None:
        if member is not None:
            group.put_member(
                replace(member, member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH, assigned={})
            )
        return
    group.put_member(
        replace(
            member or ShareGroupMember(key.member_id),
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            assigned={topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions},
        )
    )


def _apply_state_metadata(
    group: ShareGroup,
    _: ShareGroupStatePartitionMetadataKey,
    value: ShareGroupStatePartitionMetadataValue | None,
    now_ms: int,
) -> None:
    if value is None:
        group.state_metadata = StateMetadata()
        return
    group.state_metadata = StateMetadata(
        _topics(value.initializing_topics, now_ms),
        _topics(value.initialized_topics, now_ms),
        {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
    )


def _topics(topics: list[TopicPartitionsInfo], now_ms: int) -> dict[Uuid, TopicState]:
    return {
        topic.topic_id: TopicState(topic.topic_name, frozenset(topic.partitions), now_ms) for topic in topics
    }


SHARE_RECORDS: Final[Mapping[type[Message], Callable[[ShareGroup, Any, Any, int], None]]] = {
    ShareGroupMetadataKey: _apply_group,
    ShareGroupMemberMetadataKey: _apply_member,
    ShareGroupTargetAssignmentMetadataKey: _apply_target_epoch,
    ShareGroupTargetAssignmentMemberKey: _apply_target,
    ShareGroupCurrentMemberAssignmentKey: _apply_current,
    ShareGroupStatePartitionMetadataKey: _apply_state_metadata,
}
