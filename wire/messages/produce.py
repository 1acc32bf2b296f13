"""Produce (0): append record batches to partitions.

Version 3 is the first for record batches of format 2, 7 allows zstd, 8 reports single records that failed,
9 is flexible, 10 tells who the new leader is (KIP-951), 11 and 12 are for transactions (KIP-890), 13 names
topics by id. With acks 0 there is no response.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.chunks import Buffer
from ottla.wire.schema import (
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
class PartitionProduceData:
    index: int = field(INT32)
    records: Buffer | None = field(RECORDS, nullable="0+")


@structure
class TopicProduceData:
    name: str = field(STRING, "0-12", ignorable=True)
    topic_id: Uuid = field(UUID, "13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@message(api_key=ApiKey.PRODUCE, kind="request", versions=(3, 13), flexible=9, frequent=True)
class ProduceRequest(Message):
    transactional_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    acks: int = field(INT16)
    timeout_ms: int = field(INT32)
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@structure
class BatchIndexAndErrorMessage:
    batch_index: int = field(INT32, "8+")
    batch_index_error_message: str | None = field(STRING, "8+", nullable="8+", default=None)


@structure
class LeaderIdAndEpoch:
    leader_id: int = field(INT32, "10+", default=-1)
    leader_epoch: int = field(INT32, "10+", default=-1)


@structure
class PartitionProduceResponse:
    index: int = field(INT32)
    error_code: int = field(INT16)
    base_offset: int = field(INT64)
    log_append_time_ms: int = field(INT64, "2+", default=-1, ignorable=True)
    log_start_offset: int = field(INT64, "5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, "8+", ignorable=True)
    error_message: str | None = field(STRING, "8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", tag=0)


@structure
class TopicProduceResponse:
    name: str = field(STRING, "0-12", ignorable=True)
    topic_id: Uuid = field(UUID, "13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@structure
class NodeEndpoint:
    node_id: int = field(INT32, "10+")
    host: str = field(STRING, "10+")
    port: int = field(INT32, "10+")
    rack: str | None = field(STRING, "10+", nullable="10+", default=None)


@message(api_key=ApiKey.PRODUCE, kind="response", versions=(3, 13), flexible=9, frequent=True)
class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)
