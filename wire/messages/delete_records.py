"""DeleteRecords (21): raise the log start offset of partitions; offset -1 is the high watermark.

Version 2 is flexible.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, Message, array, field, message, structure


@structure
class DeleteRecordsPartition:
    partition_index: int = field(INT32)
    offset: int = field(INT64)


@structure
class DeleteRecordsTopic:
    name: str = field(STRING)
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


@message(api_key=ApiKey.DELETE_RECORDS, kind="request", versions=(0, 2), flexible=2)
class DeleteRecordsRequest(Message):
    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = field(INT32)


@structure
class DeleteRecordsPartitionResult:
    partition_index: int = field(INT32)
    low_watermark: int = field(INT64)
    error_code: int = field(INT16)


@structure
class DeleteRecordsTopicResult:
    name: str = field(STRING)
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


@message(api_key=ApiKey.DELETE_RECORDS, kind="response", versions=(0, 2), flexible=2)
class DeleteRecordsResponse(Message):
    throttle_time_ms: int = field(INT32)
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)
