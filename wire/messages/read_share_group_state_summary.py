"""ReadShareGroupStateSummary (87): start offsets and epochs of share partitions (KIP-932).

Brokers ask it of the share coordinator. Version 1 counts what is delivered (KIP-1226).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, UUID, Message, array, field, message, structure
from ottla.wire.uuids import Uuid


@structure
class PartitionData:
    partition: int = field(INT32)
    leader_epoch: int = field(INT32)


@structure
class ReadStateSummaryData:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, kind="request", versions=(0, 1), flexible=0)
class ReadShareGroupStateSummaryRequest(Message):
    group_id: str = field(STRING)
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


@structure
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    state_epoch: int = field(INT32)
    leader_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    delivery_complete_count: int = field(INT32, "1+", default=-1, ignorable=True)


@structure
class ReadStateSummaryResult:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionResult] = array(PartitionResult)


@message(api_key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, kind="response", versions=(0, 1), flexible=0)
class ReadShareGroupStateSummaryResponse(Message):
    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
