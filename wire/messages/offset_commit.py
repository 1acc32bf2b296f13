"""OffsetCommit (8): keep how far a group has read.

Version 2 has a retention time, which 5 drops again, 6 the leader epoch, 7 static members, 8 is flexible,
9 is for members of consumer groups (KIP-848), 10 names topics by id.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, UUID, Message, array, field, message, structure
from ottla.wire.uuids import Uuid


@structure
class OffsetCommitRequestPartition:
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, "6+", default=-1, ignorable=True)
    committed_metadata: str | None = field(STRING, nullable="0+")


@structure
class OffsetCommitRequestTopic:
    name: str = field(STRING, "0-9", ignorable=True)
    topic_id: Uuid = field(UUID, "10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@message(api_key=ApiKey.OFFSET_COMMIT, kind="request", versions=(2, 10), flexible=8)
class OffsetCommitRequest(Message):
    group_id: str = field(STRING)
    generation_id_or_member_epoch: int = field(INT32, "1+", default=-1, ignorable=True)
    member_id: str = field(STRING, "1+", ignorable=True)
    group_instance_id: str | None = field(STRING, "7+", nullable="7+", default=None)
    retention_time_ms: int = field(INT64, "2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


@structure
class OffsetCommitResponsePartition:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


@structure
class OffsetCommitResponseTopic:
    name: str = field(STRING, "0-9", ignorable=True)
    topic_id: Uuid = field(UUID, "10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@message(api_key=ApiKey.OFFSET_COMMIT, kind="response", versions=(2, 10), flexible=8)
class OffsetCommitResponse(Message):
    throttle_time_ms: int = field(INT32, "3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
