"""DescribeQuorum (55): who keeps the log of the metadata, and how far each of them is (KIP-595).

Version 1 has the times of followers (KIP-836); version 2 has words for errors, the directories of replicas, and the
nodes with their addresses (KIP-853).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Message,
    array,
    field,
    message,
    structure,
)


@structure
class PartitionData:
    partition_index: int = field(INT32)


@structure
class TopicData:
    topic_name: str = field(STRING)
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=ApiKey.DESCRIBE_QUORUM, kind="request", versions=(0, 2), flexible=0)
class DescribeQuorumRequest(Message):
    topics: list[TopicData] = array(TopicData)


@structure
class ReplicaState:
    replica_id: int = field(INT32)
    replica_directory_id: bytes = field(UUID, "2+")
    log_end_offset: int = field(INT64)
    last_fetch_timestamp: int = field(INT64, "1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = field(INT64, "1+", default=-1, ignorable=True)


@structure
class QuorumPartition:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, "2+", nullable="2+", ignorable=True)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)
    high_watermark: int = field(INT64)
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


@structure
class QuorumTopic:
    topic_name: str = field(STRING)
    partitions: list[QuorumPartition] = array(QuorumPartition)


# Kafka has one name each for two structures: what is asked for, and what is told of it.
QuorumTopic.__name__, QuorumPartition.__name__ = TopicData.__name__, PartitionData.__name__


@structure
class Listener:
    name: str = field(STRING, "2+")
    host: str = field(STRING, "2+")
    port: int = field(UINT16, "2+")


@structure
class Node:
    node_id: int = field(INT32, "2+")
    listeners: list[Listener] = array(Listener, "2+")


@message(api_key=ApiKey.DESCRIBE_QUORUM, kind="response", versions=(0, 2), flexible=0)
class DescribeQuorumResponse(Message):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, "2+", nullable="2+", ignorable=True)
    topics: list[QuorumTopic] = array(QuorumTopic)
    nodes: list[Node] = array(Node, "2+")
