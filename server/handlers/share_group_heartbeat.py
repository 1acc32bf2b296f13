"""ShareGroupHeartbeat (76), version 1: join a share group, stay in it, leave it (KIP-932)."""

from __future__ import annotations

from typing import Any

from ottla.server.context import RequestContext
from ottla.server.groups.protocols import check_share_protocol
from ottla.server.registry import serves
from ottla.server.share.requests import LONGEST_MEMBER_ID
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


@serves(ShareGroupHeartbeatRequest)
def handle_share_group_heartbeat(context: RequestContext, request: ShareGroupHeartbeatRequest) -> Any:
    """One step of the member to its assignment."""
    try:
        check_share_protocol(context.broker)
        if not request.member_id or len(request.member_id) > LONGEST_MEMBER_ID:
            return ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)
        if not request.group_id.strip():
            missing = "GroupId" if request.member_id.strip() else "MemberId"
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{missing} can't be empty.")
    except KafkaError as error:
        return _refuse(error)
    return context.broker.groups.answer(context, request.group_id, request, _refuse)


def _refuse(error: KafkaError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
