"""ListGroups and DescribeGroups: what admins see of the groups of a shard."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ottla.group_coordinator.classic.group import ClassicGroup, ClassicMember, GroupState
from ottla.group_coordinator.group import Group
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.wire.messages.list_groups import ListedGroup

_NOT_FOUND_SINCE = 6


def list_groups(
    groups: Mapping[str, Group], states: Collection[str], types: Collection[str]
) -> list[ListedGroup]:
    """Groups in one of the states and of one of the types, case aside; no filter lets everything through."""
    wanted_states = {state.strip().lower() for state in states}
    wanted_types = {each.lower() for each in types}
    return [
        ListedGroup(group_id, group.listed_protocol_type, group.state_name, group.TYPE)
        for group_id, group in groups.items()
        if (not wanted_states or group.state_name.lower() in wanted_states)
        and (not wanted_types or group.TYPE.lower() in wanted_types)
    ]


def describe_classic(group_id: str, group: Group | None, api_version: int) -> DescribedGroup:
    """A classic group; whatever else has this id is a dead group to clients of this API."""
    if not isinstance(group, ClassicGroup):
        described = DescribedGroup(group_id=group_id, group_state="Dead")
        if api_version >= _NOT_FOUND_SINCE:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            described.error_message = (
                f"Group {group_id} not found."
                if group is None
                else f"Group {group_id} is not a classic group."
            )
        return described
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            _describe_member(member, member.metadata(group.protocol_name) if is_stable else b"")
            for member in group.members.values()
        ],
    )


def _describe_member(member: ClassicMember, metadata: bytes) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=metadata,
        member_assignment=member.assignment,
    )
