"""SyncGroup (14), versions 0-5: get one's part of the assignment, which the leader brings along.

5 has to name the protocol that it takes the group's for.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_SINCE = 5


@serves(SyncGroupRequest)
async def handle_sync_group(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
    """Park until the assignment is there."""
    if context.api_version >= _PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        response: SyncGroupResponse = await context.broker.groups.ask(context, request.group_id, request)
    except KafkaError as error:
        response = SyncGroupResponse(error_code=error.code)
    return response
