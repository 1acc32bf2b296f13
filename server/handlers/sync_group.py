"""SyncGroup (14), versions 0-5: get one's part of the assignment, which the leader brings along."""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import KafkaError
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


@serves(SyncGroupRequest)
async def handle_sync_group(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
    """Park until the assignment is there."""
    try:
        response: SyncGroupResponse = await context.broker.groups.ask(context, request.group_id, request)
    except KafkaError as error:
        response = SyncGroupResponse(error_code=error.code)
    return response
