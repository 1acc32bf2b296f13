"""DeleteTopics (20): remove topics, by name or, from version 6, by id.

Version 4 is flexible, 5 has an error message and may answer THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, UUID, Message, array, field, message, structure
from ottla.wire.uuids import Uuid


@structure
class DeleteTopicState:
    name: str | None = field(STRING, "6+", nullable="6+", default=None)
    topic_id: Uuid = field(UUID, "6+")


@message(api_key=ApiKey.DELETE_TOPICS, kind="request", versions=(1, 6), flexible=4)
class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(STRING, "0-5", ignorable=True)
    timeout_ms: int = field(INT32)


@structure
class DeletableTopicResult:
    name: str | None = field(STRING, nullable="6+")
    topic_id: Uuid = field(UUID, "6+", ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)


@message(api_key=ApiKey.DELETE_TOPICS, kind="response", versions=(1, 6), flexible=4)
class DeleteTopicsResponse(Message):
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
