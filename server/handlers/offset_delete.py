"""OffsetDelete (47), version 0: forget offsets of topics that a group no longer subscribes to."""

from __future__ import annotations

from functools import partial
from typing import Any

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.topic_pieces import ask_in_pieces, put_together
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


@serves(OffsetDeleteRequest)
async def handle_offset_delete(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete what exists; refuse partitions that do not."""
    known: list[OffsetDeleteRequestTopic] = []
    results: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in request.topics:
        found = context.broker.image.topics_by_name.get(topic.name)
        existing = found.partitions if found is not None else {}
        valid = [each for each in topic.partitions if each.partition_index in existing]
        if valid:
            known.append(OffsetDeleteRequestTopic(topic.name, valid))
        results[topic.name] = OffsetDeleteResponseTopic(
            topic.name,
            [
                OffsetDeleteResponsePartition(each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                for each in topic.partitions
                if each.partition_index not in existing
            ],
        )
    pieces: list[OffsetDeleteResponse] = await ask_in_pieces(known, partial(_delete, context, request))
    if not pieces:  # the group may have something to say all the same
        answer = _delete(context, request, [])
        pieces = [answer if isinstance(answer, OffsetDeleteResponse) else await answer]
    for piece in pieces:
        if piece.error_code != ErrorCode.NONE:
            return piece
    return OffsetDeleteResponse(
        topics=put_together([list(results.values()), *(piece.topics for piece in pieces)])
    )


def _delete(
    context: RequestContext, request: OffsetDeleteRequest, topics: list[OffsetDeleteRequestTopic]
) -> Any:
    """The group's answer to these topics, or a coroutine of it while its log is flushed."""
    asked = OffsetDeleteRequest(request.group_id, topics)
    return context.broker.groups.answer(
        context, request.group_id, asked, lambda error: OffsetDeleteResponse(error_code=error.code)
    )
