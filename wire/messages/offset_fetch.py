"""OffsetFetch (9): how far groups have read.

Version 2 can ask for every topic and has a top-level error, 3 the throttle time, 5 the leader epoch, 6 is
flexible, 7 can insist on stable offsets (KIP-447), 8 asks for several groups at once, 9 is for members of
consumer groups (KIP-848), 10 names topics by id.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    Message,
    array,
    field,
    message,
    structure,
)
from ottla.wire.uuids import Uuid


@structure
class OffsetFetchRequestTopic:
    name: str = field(STRING, "0-7")
    partition_indexes: list[int] = array(INT32, "0-7")


@structure
class OffsetFetchRequestTopics:
    name: str = field(STRING, "8-9", ignorable=True)
    topic_id: Uuid = field(UUID, "10+", ignorable=True)
    partition_indexes: list[int] = array(INT32, "8+")


@structure
class OffsetFetchRequestGroup:
    group_id: str = field(STRING, "8+")
    member_id: str | None = field(STRING, "9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = field(INT32, "9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, "8+", nullable="8+")


@message(api_key=ApiKey.OFFSET_FETCH, kind="request", versions=(1, 10), flexible=6)
class OffsetFetchRequest(Message):
    group_id: str = field(STRING, "0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(OffsetFetchRequestTopic, "0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = field(BOOL, "7+")


@structure
class OffsetFetchResponsePartition:
    partition_index: int = field(INT32, "0-7")
    committed_offset: int = field(INT64, "0-7")
    committed_leader_epoch: int = field(INT32, "5-7", default=-1, ignorable=True)
    metadata: str | None = field(STRING, "0-7", nullable="0-7")
    error_code: int = field(INT16, "0-7")


@structure
class OffsetFetchResponseTopic:
    name: str = field(STRING, "0-7")
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, "0-7")


@structure
class OffsetFetchResponsePartitions:
    partition_index: int = field(INT32, "8+")
    committed_offset: int = field(INT64, "8+")
    committed_leader_epoch: int = field(INT32, "8+", default=-1, ignorable=True)
    metadata: str | None = field(STRING, "8+", nullable="8+")
    error_code: int = field(INT16, "8+")


@structure
class OffsetFetchResponseTopics:
    name: str = field(STRING, "8-9", ignorable=True)
    topic_id: Uuid = field(UUID, "10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, "8+")


@structure
class OffsetFetchResponseGroup:
    group_id: str = field(STRING, "8+")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, "8+")
    error_code: int = field(INT16, "8+")


@message(api_key=ApiKey.OFFSET_FETCH, kind="response", versions=(1, 10), flexible=6)
class OffsetFetchResponse(Message):
    throttle_time_ms: int = field(INT32, "3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = field(INT16, "2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, "8+")
