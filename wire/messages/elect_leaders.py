"""ElectLeaders (43): make the preferred replica the leader, or (from version 1) elect uncleanly.

Version 2 is flexible. A null list of topics means all partitions.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT8, INT16, INT32, STRING, Message, array, field, message, structure


@structure
class TopicPartitions:
    topic: str = field(STRING)
    partitions: list[int] = array(INT32)


@message(api_key=ApiKey.ELECT_LEADERS, kind="request", versions=(0, 2), flexible=2)
class ElectLeadersRequest(Message):
    election_type: int = field(INT8, "1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = field(INT32, default=60000)


@structure
class PartitionResult:
    partition_id: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


@structure
class ReplicaElectionResult:
    topic: str = field(STRING)
    partition_result: list[PartitionResult] = array(PartitionResult)


@message(api_key=ApiKey.ELECT_LEADERS, kind="response", versions=(0, 2), flexible=2)
class ElectLeadersResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, "1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
