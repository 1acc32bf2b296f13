"""ListGroups (16): the groups of a coordinator.

Version 1 has the throttle time, 3 is flexible, 4 filters by state and 5 by type.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, Message, array, field, message, structure


@message(api_key=ApiKey.LIST_GROUPS, kind="request", versions=(0, 5), flexible=3)
class ListGroupsRequest(Message):
    states_filter: list[str] = array(STRING, "4+")
    types_filter: list[str] = array(STRING, "5+")


@structure
class ListedGroup:
    group_id: str = field(STRING)
    protocol_type: str = field(STRING)
    group_state: str = field(STRING, "4+", ignorable=True)
    group_type: str = field(STRING, "5+", ignorable=True)


@message(api_key=ApiKey.LIST_GROUPS, kind="response", versions=(0, 5), flexible=3)
class ListGroupsResponse(Message):
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16)
    groups: list[ListedGroup] = array(ListedGroup)
