"""ShareAcknowledge (79): acknowledge records of share partitions (KIP-932).

2 renews locks (KIP-1222).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
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
class AcknowledgePartition:
    partition_index: int = field(INT32)
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@structure
class AcknowledgeTopic:
    topic_id: Uuid = field(UUID)
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition)


@message(api_key=ApiKey.SHARE_ACKNOWLEDGE, kind="request", versions=(1, 2), flexible=0)
class ShareAcknowledgeRequest(Message):
    group_id: str | None = field(STRING, nullable="0+", default=None)
    member_id: str | None = field(STRING, nullable="0+")
    share_session_epoch: int = field(INT32)
    is_renew_ack: bool = field(BOOL, "2+")
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


@structure
class LeaderIdAndEpoch:
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)


@structure
class PartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)


@structure
class ShareAcknowledgeTopicResponse:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


@structure
class NodeEndpoint:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable="0+", default=None)


@message(api_key=ApiKey.SHARE_ACKNOWLEDGE, kind="response", versions=(1, 2), flexible=0)
class ShareAcknowledgeResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = field(INT32, "2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
