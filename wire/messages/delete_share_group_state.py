"""DeleteShareGroupState (86): forget share partitions (KIP-932); brokers ask it of the share coordinator."""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, UUID, Message, array, field, message, structure
from ottla.wire.uuids import Uuid


@structure
class PartitionData:
    partition: int = field(INT32)


@structure
class DeleteStateData:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=ApiKey.DELETE_SHARE_GROUP_STATE, kind="request", versions=(0, 0), flexible=0)
class DeleteShareGroupStateRequest(Message):
    group_id: str = field(STRING)
    topics: list[DeleteStateData] = array(DeleteStateData)


@structure
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


@structure
class DeleteStateResult:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionResult] = array(PartitionResult)


@message(api_key=ApiKey.DELETE_SHARE_GROUP_STATE, kind="response", versions=(0, 0), flexible=0)
class DeleteShareGroupStateResponse(Message):
    results: list[DeleteStateResult] = array(DeleteStateResult)
