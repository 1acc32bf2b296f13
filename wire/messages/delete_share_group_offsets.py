"""DeleteShareGroupOffsets (92): forget the offsets of topics in a share group without members (KIP-932)."""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, UUID, Message, array, field, message, structure
from ottla.wire.uuids import Uuid


@structure
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = field(STRING)


@message(api_key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, kind="request", versions=(0, 0), flexible=0)
class DeleteShareGroupOffsetsRequest(Message):
    group_id: str = field(STRING)
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


@structure
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = field(STRING)
    topic_id: Uuid = field(UUID)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


@message(api_key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, kind="response", versions=(0, 0), flexible=0)
class DeleteShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(DeleteShareGroupOffsetsResponseTopic)
