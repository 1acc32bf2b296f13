"""LeaveGroup (13): members leave a classic group.

Version 1 has the throttle time, 3 takes several members, also by instance id, 4 is flexible, 5 has a reason.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, Message, array, field, message, structure


@structure
class MemberIdentity:
    member_id: str = field(STRING, "3+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    reason: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)


@message(api_key=ApiKey.LEAVE_GROUP, kind="request", versions=(0, 5), flexible=4)
class LeaveGroupRequest(Message):
    group_id: str = field(STRING)
    member_id: str = field(STRING, "0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


@structure
class MemberResponse:
    member_id: str = field(STRING, "3+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+")
    error_code: int = field(INT16, "3+")


@message(api_key=ApiKey.LEAVE_GROUP, kind="response", versions=(0, 5), flexible=4)
class LeaveGroupResponse(Message):
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16)
    members: list[MemberResponse] = array(MemberResponse, "3+")
