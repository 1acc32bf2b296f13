"""WriteShareGroupState (85): keep what changed in share partitions (KIP-932); brokers ask it of the share coordinator.

1 counts what is delivered (KIP-1226).
"""

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
class StateBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_state: int = field(INT8)
    delivery_count: int = field(INT16)


@structure
class PartitionData:
    partition: int = field(INT32)
    state_epoch: int = field(INT32)
    leader_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    delivery_complete_count: int = field(INT32, "1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = array(StateBatch)


@structure
class WriteStateData:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=ApiKey.WRITE_SHARE_GROUP_STATE, kind="request", versions=(0, 1), flexible=0)
class WriteShareGroupStateRequest(Message):
    group_id: str = field(STRING)
    topics: list[WriteStateData] = array(WriteStateData)


@structure
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


@structure
class WriteStateResult:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionResult] = array(PartitionResult)


@message(api_key=ApiKey.WRITE_SHARE_GROUP_STATE, kind="response", versions=(0, 1), flexible=0)
class WriteShareGroupStateResponse(Message):
    results: list[WriteStateResult] = array(WriteStateResult)
