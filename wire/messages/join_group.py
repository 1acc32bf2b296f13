"""JoinGroup (11): become a member of a classic group, or take part in its next generation.

Version 1 has the rebalance timeout, 2 the throttle time, 4 makes new members ask twice (MEMBER_ID_REQUIRED),
5 has static members, 6 is flexible, 7 tells the protocol type, 8 has a reason, 9 can tell the leader to
skip the assignment.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, BYTES, INT16, INT32, STRING, Message, array, field, message, structure


@structure
class JoinGroupRequestProtocol:
    name: str = field(STRING)
    metadata: bytes = field(BYTES)


@message(api_key=ApiKey.JOIN_GROUP, kind="request", versions=(0, 9), flexible=6)
class JoinGroupRequest(Message):
    group_id: str = field(STRING)
    session_timeout_ms: int = field(INT32)
    rebalance_timeout_ms: int = field(INT32, "1+", default=-1, ignorable=True)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "5+", nullable="5+", default=None)
    protocol_type: str = field(STRING)
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = field(STRING, "8+", nullable="8+", default=None, ignorable=True)


@structure
class JoinGroupResponseMember:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = field(BYTES)


@message(api_key=ApiKey.JOIN_GROUP, kind="response", versions=(0, 9), flexible=6)
class JoinGroupResponse(Message):
    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    error_code: int = field(INT16)
    generation_id: int = field(INT32, default=-1)
    protocol_type: str | None = field(STRING, "7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = field(STRING, nullable="7+")
    leader: str = field(STRING)
    skip_assignment: bool = field(BOOL, "9+")
    member_id: str = field(STRING)
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
