"""A classic group as its record in the log, and back."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.group_coordinator.classic.group import ClassicGroup, ClassicMember, GroupState
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.records.classic_group import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from ottla.wire.messages.join_group import JoinGroupRequestProtocol


def group_record(group: ClassicGroup) -> CoordinatorRecord:
    """The group as it is now."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=[_member_record(group, member) for member in group.members.values()],
    )
    return _written(group, value)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """A group that has just come into being, whatever its first members are up to."""
    value = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=group.state_timestamp_ms)
    return _written(group, value)


def apply_group_record(
    groups: Mapping[str, object], key: GroupMetadataKey, value: GroupMetadataValue
) -> ClassicGroup:
    """The group that the record tells of: the one there is, if it wrote the record itself."""
    group = groups.get(key.group)
    if not isinstance(group, ClassicGroup) or group.written is not value:
        group = _load(key.group, value)
    group.persisted = value
    return group


def _written(group: ClassicGroup, value: GroupMetadataValue) -> CoordinatorRecord:
    group.written = value
    return CoordinatorRecord(GroupMetadataKey(group.group_id), value)


def _member_record(group: ClassicGroup, member: ClassicMember) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(group.protocol_name),
        assignment=member.assignment,
    )


def _load(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    group = ClassicGroup(
        group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        state_timestamp_ms=value.current_state_timestamp,
        generation_id=value.generation,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    for each in value.members:
        timeout_ms = each.session_timeout if each.rebalance_timeout == -1 else each.rebalance_timeout
        group.add(
            ClassicMember(
                each.member_id,
                each.group_instance_id,
                each.client_id,
                each.client_host,
                timeout_ms,
                each.session_timeout,
                value.protocol_type,
                [JoinGroupRequestProtocol(value.protocol or "", each.subscription)],
                assignment=each.assignment,
            )
        )
    group.protocol_type = value.protocol_type or None
    group.update_topics()
    return group
