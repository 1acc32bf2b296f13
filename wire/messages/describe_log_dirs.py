"""DescribeLogDirs (35): the log directories of a broker and the size of each replica in them.

Version 2 is flexible, 3 has a top-level error, 4 total and usable bytes (KIP-827), 5 tells cordoned
directories.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT16, INT32, INT64, STRING, Message, array, field, message, structure


@structure
class DescribableLogDirTopic:
    topic: str = field(STRING)
    partitions: list[int] = array(INT32)


@message(api_key=ApiKey.DESCRIBE_LOG_DIRS, kind="request", versions=(1, 5), flexible=2)
class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")


@structure
class DescribeLogDirsPartition:
    partition_index: int = field(INT32)
    partition_size: int = field(INT64)
    offset_lag: int = field(INT64)
    is_future_key: bool = field(BOOL)


@structure
class DescribeLogDirsTopic:
    name: str = field(STRING)
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@structure
class DescribeLogDirsResult:
    error_code: int = field(INT16)
    log_dir: str = field(STRING)
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = field(INT64, "4+", default=-1, ignorable=True)
    usable_bytes: int = field(INT64, "4+", default=-1, ignorable=True)
    is_cordoned: bool = field(BOOL, "5+", ignorable=True)


@message(api_key=ApiKey.DESCRIBE_LOG_DIRS, kind="response", versions=(1, 5), flexible=2)
class DescribeLogDirsResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, "3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
