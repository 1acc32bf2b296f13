"""JoinGroup (11), versions 0-9: become a member of a classic group and wait for its next generation.

- 0 has no rebalance timeout; the session timeout is taken for it.
- 4 asks new members to come back with the id they are given.
- An error has no name of a protocol: null from 7 on, empty before.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import KafkaError
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

_NULLABLE_NAME_SINCE = 7


@serves(JoinGroupRequest)
async def handle_join_group(context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    """Park until the group is ready."""
    try:
        response: JoinGroupResponse = await context.broker.groups.ask(context, request.group_id, request)
    except KafkaError as error:
        response = JoinGroupResponse(error_code=error.code, member_id=request.member_id)
    if not response.protocol_name:
        response.protocol_name = None if context.api_version >= _NULLABLE_NAME_SINCE else ""
    return response
