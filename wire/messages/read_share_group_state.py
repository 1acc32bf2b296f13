"""ReadShareGroupState (84): the whole state of share partitions (KIP-932); brokers ask it of the share coordinator."""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import (
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
    structure,
)
from ottla.wire.uuids import Uuid


@structure
class PartitionData:
    partition: int = field(INT32)
    leader_epoch: int = field(INT32)


@structure
class ReadStateData:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=ApiKey.READ_SHARE_GROUP_STATE, kind="request", versions=(0, 0), flexible=0)
class ReadShareGroupStateRequest(Message):
    group_id: str = field(STRING)
    topics: list[ReadStateData] = array(ReadStateData)


@structure
class StateBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_state: int = field(INT8)
    delivery_count: int = field(INT16)


@structure
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    state_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    state_batches: list[StateBatch] = array(StateBatch)


@structure
class ReadStateResult:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionResult] = array(PartitionResult)


@message(api_key=ApiKey.READ_SHARE_GROUP_STATE, kind="response", versions=(0, 0), flexible=0)
class ReadShareGroupStateResponse(Message):
    results: list[ReadStateResult] = array(ReadStateResult)
