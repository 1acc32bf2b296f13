"""DeleteGroups (42): remove groups without members, with their offsets.

Version 1 is the same, 2 is flexible.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, Message, array, field, message, structure


@message(api_key=ApiKey.DELETE_GROUPS, kind="request", versions=(0, 2), flexible=2)
class DeleteGroupsRequest(Message):
    groups_names: list[str] = array(STRING)


@structure
class DeletableGroupResult:
    group_id: str = field(STRING)
    error_code: int = field(INT16)


@message(api_key=ApiKey.DELETE_GROUPS, kind="response", versions=(0, 2), flexible=2)
class DeleteGroupsResponse(Message):
    throttle_time_ms: int = field(INT32)
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
