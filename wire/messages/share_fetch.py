"""ShareFetch (78): acquire records of share partitions, and acknowledge earlier ones (KIP-932).

2 has the mode of acquisition (KIP-1206) and renews locks (KIP-1222).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.chunks import Chunk
from ottla.wire.schema import (
    BOOL,
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
class AcknowledgementBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    acknowledge_types: list[int] = array(INT8)


@structure
class FetchPartition:
    partition_index: int = field(INT32)
    partition_max_bytes: int = field(INT32, "0")
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@structure
class FetchTopic:
    topic_id: Uuid = field(UUID)
    partitions: list[FetchPartition] = array(FetchPartition)


@structure
class ForgottenTopic:
    topic_id: Uuid = field(UUID)
    partitions: list[int] = array(INT32)


@message(api_key=ApiKey.SHARE_FETCH, kind="request", versions=(1, 2), flexible=0)
class ShareFetchRequest(Message):
    group_id: str | None = field(STRING, nullable="0+", default=None)
    member_id: str | None = field(STRING, nullable="0+")
    share_session_epoch: int = field(INT32)
    max_wait_ms: int = field(INT32)
    min_bytes: int = field(INT32)
    max_bytes: int = field(INT32, default=0x7FFFFFFF)
    max_records: int = field(INT32, "1+")
    batch_size: int = field(INT32, "1+")
    share_acquire_mode: int = field(INT8, "2+", ignorable=True)
    is_renew_ack: bool = field(BOOL, "2+")
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


@structure
class LeaderIdAndEpoch:
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)


@structure
class AcquiredRecords:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_count: int = field(INT16)


@structure
class PartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    acknowledge_error_code: int = field(INT16)
    acknowledge_error_message: str | None = field(STRING, nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)
    records: Chunk | None = field(RECORDS, nullable="0")
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


@structure
class ShareFetchableTopicResponse:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


@structure
class NodeEndpoint:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable="0+", default=None)


@message(api_key=ApiKey.SHARE_FETCH, kind="response", versions=(1, 2), flexible=0)
class ShareFetchResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = field(INT32, "1+")
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
