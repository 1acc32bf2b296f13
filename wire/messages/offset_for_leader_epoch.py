"""OffsetForLeaderEpoch (23): where a leader epoch ends, so that consumers and followers find out where logs
diverge.

Version 3 has the replica id, 4 is flexible.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, Message, array, field, message, structure


@structure
class OffsetForLeaderPartition:
    partition: int = field(INT32)
    current_leader_epoch: int = field(INT32, "2+", default=-1, ignorable=True)
    leader_epoch: int = field(INT32)


@structure
class OffsetForLeaderTopic:
    topic: str = field(STRING)
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


@message(api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, kind="request", versions=(2, 4), flexible=4)
class OffsetForLeaderEpochRequest(Message):
    replica_id: int = field(INT32, "3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


@structure
class EpochEndOffset:
    error_code: int = field(INT16)
    partition: int = field(INT32)
    leader_epoch: int = field(INT32, "1+", default=-1, ignorable=True)
    end_offset: int = field(INT64, default=-1)


@structure
class OffsetForLeaderTopicResult:
    topic: str = field(STRING)
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


@message(api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, kind="response", versions=(2, 4), flexible=4)
class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
