"""CreatePartitions (37): raise the number of partitions of topics.

Version 2 is flexible, 3 may answer THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT16, INT32, STRING, Message, array, field, message, structure


@structure
class CreatePartitionsAssignment:
    broker_ids: list[int] = array(INT32)


@structure
class CreatePartitionsTopic:
    name: str = field(STRING)
    count: int = field(INT32)
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, nullable="0+")


@message(api_key=ApiKey.CREATE_PARTITIONS, kind="request", versions=(0, 3), flexible=2)
class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = field(INT32)
    validate_only: bool = field(BOOL)


@structure
class CreatePartitionsTopicResult:
    name: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


@message(api_key=ApiKey.CREATE_PARTITIONS, kind="response", versions=(0, 3), flexible=2)
class CreatePartitionsResponse(Message):
    throttle_time_ms: int = field(INT32)
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
