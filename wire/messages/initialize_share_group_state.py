"""InitializeShareGroupState (83): give share partitions a first state (KIP-932).

Brokers ask it of the share coordinator.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, UUID, Message, array, field, message, structure
from ottla.wire.uuids import Uuid


@structure
class PartitionData:
    partition: int = field(INT32)
    state_epoch: int = field(INT32)
    start_offset: int = field(INT64)


@structure
class InitializeStateData:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = array(PartitionData)


@message(api_key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, kind="request", versions=(0, 0), flexible=0)
class InitializeShareGroupStateRequest(Message):
    group_id: str = field(STRING)
    topics: list[InitializeStateData] = array(InitializeStateData)


@structure
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


@structure
class InitializeStateResult:
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionResult] = array(PartitionResult)


@message(api_key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, kind="response", versions=(0, 0), flexible=0)
class InitializeShareGroupStateResponse(Message):
    results: list[InitializeStateResult] = array(InitializeStateResult)
