"""AlterShareGroupOffsets (91): move the start offsets of a share group without members (KIP-932)."""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, UUID, Message, array, field, message, structure
from ottla.wire.uuids import Uuid


@structure
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int = field(INT32)
    start_offset: int = field(INT64)


@structure
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = field(STRING)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(AlterShareGroupOffsetsRequestPartition)


@message(api_key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, kind="request", versions=(0, 0), flexible=0)
class AlterShareGroupOffsetsRequest(Message):
    group_id: str = field(STRING)
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic)


@structure
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


@structure
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = field(STRING)
    topic_id: Uuid = field(UUID)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(AlterShareGroupOffsetsResponsePartition)


@message(api_key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, kind="response", versions=(0, 0), flexible=0)
class AlterShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(AlterShareGroupOffsetsResponseTopic)
