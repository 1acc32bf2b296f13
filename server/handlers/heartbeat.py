"""Heartbeat (12), versions 0-4: stay a member of a classic group."""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@serves(HeartbeatRequest)
async def handle_heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    """Prolong the session."""
    try:
        response: HeartbeatResponse = await context.broker.groups.ask(context, request.group_id, request)
    except KafkaError as error:
        # While groups are being loaded no session runs, so all is well.
        loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        response = HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.code)
    return response
