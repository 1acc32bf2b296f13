"""DescribeShareGroupOffsets (90): start offsets of share partitions (KIP-932).

1 has the lag (KIP-1226).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, UUID, Message, array, field, message, structure
from ottla.wire.uuids import Uuid


@structure
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = field(STRING)
    partitions: list[int] = array(INT32)


@structure
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = field(STRING)
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, nullable="0+"
    )


@message(api_key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, kind="request", versions=(0, 1), flexible=0)
class DescribeShareGroupOffsetsRequest(Message):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(DescribeShareGroupOffsetsRequestGroup)


@structure
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int = field(INT32)
    start_offset: int = field(INT64)
    leader_epoch: int = field(INT32)
    lag: int = field(INT64, "1+", default=-1, ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


@structure
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = field(STRING)
    topic_id: Uuid = field(UUID)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(
        DescribeShareGroupOffsetsResponsePartition
    )


@structure
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = field(STRING)
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(DescribeShareGroupOffsetsResponseTopic)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


@message(api_key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, kind="response", versions=(0, 1), flexible=0)
class DescribeShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = field(INT32)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(DescribeShareGroupOffsetsResponseGroup)
