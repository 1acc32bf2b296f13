"""ListOffsets (2): the offset of a timestamp, or the earliest and latest ones.

Version 2 has the isolation level, 4 leader epochs, 6 is flexible, 7 asks for the largest timestamp (-3), 8
for the earliest local offset (-4), 9 for the last tiered one (-5), 10 has a timeout for remote storage, 11
asks for the earliest offset that waits for upload (-6).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT8, INT16, INT32, INT64, STRING, Message, array, field, message, structure


@structure
class ListOffsetsPartition:
    partition_index: int = field(INT32)
    current_leader_epoch: int = field(INT32, "4+", default=-1, ignorable=True)
    timestamp: int = field(INT64)


@structure
class ListOffsetsTopic:
    name: str = field(STRING)
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@message(api_key=ApiKey.LIST_OFFSETS, kind="request", versions=(1, 11), flexible=6, frequent=True)
class ListOffsetsRequest(Message):
    replica_id: int = field(INT32)
    isolation_level: int = field(INT8, "2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = field(INT32, "10+", ignorable=True)


@structure
class ListOffsetsPartitionResponse:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    timestamp: int = field(INT64, "1+", default=-1)
    offset: int = field(INT64, "1+", default=-1)
    leader_epoch: int = field(INT32, "4+", default=-1)


@structure
class ListOffsetsTopicResponse:
    name: str = field(STRING)
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@message(api_key=ApiKey.LIST_OFFSETS, kind="response", versions=(1, 11), flexible=6, frequent=True)
class ListOffsetsResponse(Message):
    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
