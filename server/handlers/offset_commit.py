"""OffsetCommit (8), versions 2-10: keep how far a group has read.

Topics and partitions that do not exist are refused one by one; the others are handed to the group.

- 2-4 carry a retention time of their own.
- 10 names topics by id: UNKNOWN_TOPIC_ID where there is none.
"""

from __future__ import annotations

from typing import Any

from ottla.group_coordinator.offset_requests import commit_error
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
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
    known: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        _sort_out(context, topic, known, refused)
    if not known:
        return OffsetCommitResponse(topics=refused)
    request.topics = known
    if refused:
        return _commit_some(context, request, refused)
    return context.broker.groups.answer(
        context, request.group_id, request, lambda error: commit_error(request, error.code)
    )


async def _commit_some(
    context: RequestContext, request: OffsetCommitRequest, refused: list[OffsetCommitResponseTopic]
) -> OffsetCommitResponse:
    try:
        response: OffsetCommitResponse = await context.broker.groups.ask(context, request.group_id, request)
    except KafkaError as error:
        response = commit_error(request, error.code)
    response.topics = _merge(refused, response.topics)
    return response


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


def _merge(
    refused: list[OffsetCommitResponseTopic], answered: list[OffsetCommitResponseTopic]
) -> list[OffsetCommitResponseTopic]:
    """One entry for each topic, refused partitions first."""
    merged = {(topic.name, topic.topic_id): topic for topic in refused}
    for topic in answered:
        entry = merged.setdefault((topic.name, topic.topic_id), topic)
        if entry is not topic:
            entry.partitions += topic.partitions
    return list(merged.values())
