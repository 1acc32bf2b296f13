"""DescribeGroups (15): state and members of classic groups.

Version 1 has the throttle time, 3 authorized operations, 4 static members, 5 is flexible, 6 tells groups
that do not exist from dead ones.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, BYTES, INT16, INT32, STRING, Message, array, field, message, structure


@message(api_key=ApiKey.DESCRIBE_GROUPS, kind="request", versions=(0, 6), flexible=5)
class DescribeGroupsRequest(Message):
    groups: list[str] = array(STRING)
    include_authorized_operations: bool = field(BOOL, "3+")


@structure
class DescribedGroupMember:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "4+", nullable="4+", default=None, ignorable=True)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    member_metadata: bytes = field(BYTES)
    member_assignment: bytes = field(BYTES)


@structure
class DescribedGroup:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, "6+", nullable="6+", default=None)
    group_id: str = field(STRING)
    group_state: str = field(STRING)
    protocol_type: str = field(STRING)
    protocol_data: str = field(STRING)
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = field(INT32, "3+", default=-2147483648)


@message(api_key=ApiKey.DESCRIBE_GROUPS, kind="response", versions=(0, 6), flexible=5)
class DescribeGroupsResponse(Message):
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)
