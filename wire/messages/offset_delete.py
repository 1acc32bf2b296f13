"""OffsetDelete (47): forget committed offsets of topics that a group no longer subscribes to."""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, Message, array, field, message, structure


@structure
class OffsetDeleteRequestPartition:
    partition_index: int = field(INT32)


@structure
class OffsetDeleteRequestTopic:
    name: str = field(STRING)
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


@message(api_key=ApiKey.OFFSET_DELETE, kind="request", versions=(0, 0))
class OffsetDeleteRequest(Message):
    group_id: str = field(STRING)
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


@structure
class OffsetDeleteResponsePartition:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


@structure
class OffsetDeleteResponseTopic:
    name: str = field(STRING)
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


@message(api_key=ApiKey.OFFSET_DELETE, kind="response", versions=(0, 0))
class OffsetDeleteResponse(Message):
    error_code: int = field(INT16)
    throttle_time_ms: int = field(INT32, ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
