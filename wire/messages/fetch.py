"""Fetch (1): read record batches, as a consumer or as a follower.

Version 4 has the isolation level and aborted transactions, 5 the log start offset, 7 incremental sessions
(KIP-227), 9 leader epochs, 11 the client's rack, 12 is flexible and finds diverging epochs, 13 names topics
by id, 15 moves the replica id into a tagged field, 16 tells who the new leader is, 17 and 18 are for
followers.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.chunks import Chunk
from ottla.wire.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    Message,
    array,
    field,
    message,
    struct,
    structure,
)
from ottla.wire.uuids import Uuid


@structure
class ReplicaState:
    replica_id: int = field(INT32, "15+", default=-1)
    replica_epoch: int = field(INT64, "15+", default=-1)


@structure
class FetchPartition:
    partition: int = field(INT32)
    current_leader_epoch: int = field(INT32, "9+", default=-1, ignorable=True)
    fetch_offset: int = field(INT64)
    last_fetched_epoch: int = field(INT32, "12+", default=-1)
    log_start_offset: int = field(INT64, "5+", default=-1, ignorable=True)
    partition_max_bytes: int = field(INT32)
    replica_directory_id: Uuid = field(UUID, "17+", tag=0, ignorable=True)
    high_watermark: int = field(INT64, "18+", default=0x7FFFFFFFFFFFFFFF, tag=1, ignorable=True)


@structure
class FetchTopic:
    topic: str = field(STRING, "0-12", ignorable=True)
    topic_id: Uuid = field(UUID, "13+", ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition)


@structure
class ForgottenTopic:
    topic: str = field(STRING, "7-12", ignorable=True)
    topic_id: Uuid = field(UUID, "13+", ignorable=True)
    partitions: list[int] = array(INT32, "7+")


@message(api_key=ApiKey.FETCH, kind="request", versions=(4, 18), flexible=12, frequent=True)
class FetchRequest(Message):
    cluster_id: str | None = field(STRING, "12+", nullable="12+", default=None, tag=0, ignorable=True)
    replica_id: int = field(INT32, "0-14", default=-1)
    replica_state: ReplicaState = struct(ReplicaState, "15+", tag=1)
    max_wait_ms: int = field(INT32)
    min_bytes: int = field(INT32)
    max_bytes: int = field(INT32, "3+", default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = field(INT8, "4+", ignorable=True)
    session_id: int = field(INT32, "7+", ignorable=True)
    session_epoch: int = field(INT32, "7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, "7+")
    rack_id: str = field(STRING, "11+", ignorable=True)


@structure
class EpochEndOffset:
    epoch: int = field(INT32, "12+", default=-1)
    end_offset: int = field(INT64, "12+", default=-1)


@structure
class LeaderIdAndEpoch:
    leader_id: int = field(INT32, "12+", default=-1)
    leader_epoch: int = field(INT32, "12+", default=-1)


@structure
class SnapshotId:
    end_offset: int = field(INT64, default=-1)
    epoch: int = field(INT32, default=-1)


@structure
class AbortedTransaction:
    producer_id: int = field(INT64, "4+")
    first_offset: int = field(INT64, "4+")


@structure
class PartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    high_watermark: int = field(INT64)
    last_stable_offset: int = field(INT64, "4+", default=-1, ignorable=True)
    log_start_offset: int = field(INT64, "5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = field(INT32, "11+", default=-1)
    records: Chunk | None = field(RECORDS, nullable="0+")


@structure
class FetchableTopicResponse:
    topic: str = field(STRING, "0-12", ignorable=True)
    topic_id: Uuid = field(UUID, "13+", ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


@structure
class NodeEndpoint:
    node_id: int = field(INT32, "16+")
    host: str = field(STRING, "16+")
    port: int = field(INT32, "16+")
    rack: str | None = field(STRING, "16+", nullable="16+", default=None)


@message(api_key=ApiKey.FETCH, kind="response", versions=(4, 18), flexible=12, frequent=True)
class FetchResponse(Message):
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "7+", ignorable=True)
    session_id: int = field(INT32, "7+")
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", tag=0)
