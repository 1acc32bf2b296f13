"""Heartbeat (12), versions 0-4: stay a member of a classic group."""

from __future__ import annotations

from typing import Any

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@serves(HeartbeatRequest)
def handle_heartbeat(context: RequestContext, request: HeartbeatRequest) -> Any:
    """Prolong the session."""
    return context.broker.groups.answer(context, request.group_id, request, _refuse)


def _refuse(error: KafkaError) -> HeartbeatResponse:
    # While groups are being loaded no session runs, so all is well.
    loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.code)
