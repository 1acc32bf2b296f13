"""Heartbeat (12): a member of a classic group is alive, and learns of a rebalance.

Version 1 has the throttle time, 3 static members, 4 is flexible.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, Message, field, message


@message(api_key=ApiKey.HEARTBEAT, kind="request", versions=(0, 4), flexible=4)
class HeartbeatRequest(Message):
    group_id: str = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)


@message(api_key=ApiKey.HEARTBEAT, kind="response", versions=(0, 4), flexible=4)
class HeartbeatResponse(Message):
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16)
