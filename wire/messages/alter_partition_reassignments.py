"""AlterPartitionReassignments (45): move partitions to other brokers, or give up moving them (KIP-455).

Version 1 can forbid that the number of replicas changes (KIP-860).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT16, INT32, STRING, Message, array, field, message, structure


@structure
class ReassignablePartition:
    partition_index: int = field(INT32)
    replicas: list[int] | None = array(INT32, nullable="0+", default=None)


@structure
class ReassignableTopic:
    name: str = field(STRING)
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


@message(api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, kind="request", versions=(0, 1), flexible=0)
class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int = field(INT32, default=60000)
    allow_replication_factor_change: bool = field(BOOL, "1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


@structure
class ReassignablePartitionResponse:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


@structure
class ReassignableTopicResponse:
    name: str = field(STRING)
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@message(api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, kind="response", versions=(0, 1), flexible=0)
class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = field(INT32)
    allow_replication_factor_change: bool = field(BOOL, "1+", default=True, ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
