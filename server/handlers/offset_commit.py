"""OffsetCommit (8), versions 2-10: keep how far a group has read.

Topics and partitions that do not exist are refused one by one; the others are handed to the group. Very many are, piece
by piece, as if each had come by itself: a topic that is deleted meanwhile is not known any more to the next one.

- 2-4 carry a retention time of their own.
- 10 names topics by id: UNKNOWN_TOPIC_ID where there is none.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from ottla.group_coordinator.offset_requests import commit_error
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.topic_pieces import ask_in_pieces, put_together
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_TOPIC_IDS_SINCE = 10


@serves(OffsetCommitRequest)
def handle_offset_commit(context: RequestContext, request: OffsetCommitRequest) -> Any:
    """Commit what can be committed."""
    if context.has_many_elements:
        return _commit_many(context, request)
    known, refused = _sorted_out(context, request.topics)
    if not known:
        return OffsetCommitResponse(topics=refused)
    answer = _commit(context, request, known)
    return _put_together(refused, answer) if refused else answer


async def _put_together(refused: list[OffsetCommitResponseTopic], waiting: Any) -> OffsetCommitResponse:
    answer: OffsetCommitResponse = waiting if isinstance(waiting, OffsetCommitResponse) else await waiting
    return OffsetCommitResponse(topics=put_together([refused, answer.topics]))


async def _commit_many(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    _, refused = _sorted_out(context, [topic for topic in request.topics if not topic.partitions])

    def commit(topics: list[OffsetCommitRequestTopic]) -> Any:
        known, unknown = _sorted_out(context, topics)
        refused.extend(unknown)
        return _commit(context, request, known) if known else OffsetCommitResponse()

    answers: list[OffsetCommitResponse] = await ask_in_pieces(request.topics, commit)
    return OffsetCommitResponse(topics=put_together([refused, *(answer.topics for answer in answers)]))


def _commit(
    context: RequestContext, request: OffsetCommitRequest, topics: list[OffsetCommitRequestTopic]
) -> Any:
    """The group's answer to these topics, or a coroutine of it while its log is flushed."""
    asked = copy(request)
    asked.topics = topics
    return context.broker.groups.answer(
        context, asked.group_id, asked, lambda error: commit_error(asked, error.code)
    )


def _sorted_out(
    context: RequestContext, topics: list[OffsetCommitRequestTopic]
) -> tuple[list[OffsetCommitRequestTopic], list[OffsetCommitResponseTopic]]:
    """What exists, and the answer to the rest."""
    known: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    for topic in topics:
        _sort_out(context, topic, known, refused)
    return known, refused


def _sort_out(
    context: RequestContext,
    topic: OffsetCommitRequestTopic,
    known: list[OffsetCommitRequestTopic],
    refused: list[OffsetCommitResponseTopic],
) -> None:
    """Give the topic its name and id, and part its partitions into those that exist and the others."""
    image = context.broker.image
    by_id = context.api_version >= _TOPIC_IDS_SINCE
    found = image.topics_by_id.get(topic.topic_id) if by_id else image.topics_by_name.get(topic.name)
    if found is not None:
        topic.name, topic.topic_id = found.name, found.topic_id
    existing = found.partitions if found is not None else {}
    error = ErrorCode.UNKNOWN_TOPIC_ID if by_id and found is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    unknown = [each for each in topic.partitions if each.partition_index not in existing]
    if unknown:
        results = [OffsetCommitResponsePartition(each.partition_index, error) for each in unknown]
        refused.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, results))
    elif not topic.partitions:
        refused.append(OffsetCommitResponseTopic(topic.name, topic.topic_id))
    valid = [each for each in topic.partitions if each.partition_index in existing]
    if valid:
        known.append(OffsetCommitRequestTopic(topic.name, topic.topic_id, valid))
