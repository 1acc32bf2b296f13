"""ConsumerGroupHeartbeat (68), versions 0-1: join a consumer group, stay in it, leave it (KIP-848).

1 has regular expressions, and its members bring their own ids.
"""

from __future__ import annotations

from typing import Any

from ottla.server.context import RequestContext
from ottla.server.coordinated import REGULAR_EXPRESSIONS
from ottla.server.groups.protocols import check_consumer_protocol
from ottla.server.late_parts import import_late, is_imported
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@serves(ConsumerGroupHeartbeatRequest)
def handle_consumer_group_heartbeat(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Any:
    """One step of the member towards its assignment."""
    try:
        check_consumer_protocol(context.broker)
        if not request.group_id.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, _blank(request, context.api_version))
    except KafkaError as error:
        return _refuse(error)
    if request.subscribed_topic_regex and not is_imported(REGULAR_EXPRESSIONS):
        return _with_regular_expressions(context, request)
    return _ask(context, request)


def _ask(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Any:
    return context.broker.groups.answer(context, request.group_id, request, _refuse)


async def _with_regular_expressions(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Any:
    """The first with one: a worker thread reads the library."""
    await import_late(REGULAR_EXPRESSIONS)
    answer = _ask(context, request)
    return answer if isinstance(answer, ConsumerGroupHeartbeatResponse) else await answer


def _refuse(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def _blank(request: ConsumerGroupHeartbeatRequest, version: int) -> str:
    """What Kafka complains of first when there is no group to ask."""
    needs_id = version >= 1 or request.member_epoch > 0 or request.member_epoch == -1
    return (
        "MemberId can't be empty."
        if needs_id and not request.member_id.strip()
        else "GroupId can't be empty."
    )
