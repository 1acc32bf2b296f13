"""SyncGroup (14): the leader of a classic group hands over the assignment, everyone gets their part.

Version 1 has the throttle time, 3 static members, 4 is flexible, 5 names the protocol.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BYTES, INT16, INT32, STRING, Message, array, field, message, structure


@structure
class SyncGroupRequestAssignment:
    member_id: str = field(STRING)
    assignment: bytes = field(BYTES)


@message(api_key=ApiKey.SYNC_GROUP, kind="request", versions=(0, 5), flexible=4)
class SyncGroupRequest(Message):
    group_id: str = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    protocol_type: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@message(api_key=ApiKey.SYNC_GROUP, kind="response", versions=(0, 5), flexible=4)
class SyncGroupResponse(Message):
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16)
    protocol_type: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = field(BYTES)
