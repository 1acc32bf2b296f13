"""ListPartitionReassignments (46): the partitions that are on their way to other brokers (KIP-455).

A null list of topics means all partitions.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, Message, array, field, message, structure


@structure
class ListPartitionReassignmentsTopics:
    name: str = field(STRING)
    partition_indexes: list[int] = array(INT32)


@message(api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS, kind="request", versions=(0, 0), flexible=0)
class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int = field(INT32, default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, nullable="0+", default=None
    )


@structure
class OngoingPartitionReassignment:
    partition_index: int = field(INT32)
    replicas: list[int] = array(INT32)
    adding_replicas: list[int] = array(INT32)
    removing_replicas: list[int] = array(INT32)


@structure
class OngoingTopicReassignment:
    name: str = field(STRING)
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


@message(api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS, kind="response", versions=(0, 0), flexible=0)
class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)
