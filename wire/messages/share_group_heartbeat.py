"""ShareGroupHeartbeat (76): the whole life of a member of a share group (KIP-932)."""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, UUID, Message, array, field, message, struct, structure
from ottla.wire.uuids import Uuid


@message(api_key=ApiKey.SHARE_GROUP_HEARTBEAT, kind="request", versions=(1, 1), flexible=0)
class ShareGroupHeartbeatRequest(Message):
    group_id: str = field(STRING)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    rack_id: str | None = field(STRING, nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = array(STRING, nullable="0+", default=None)


@structure
class TopicPartitions:
    topic_id: Uuid = field(UUID)
    partitions: list[int] = array(INT32)


@structure
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message(api_key=ApiKey.SHARE_GROUP_HEARTBEAT, kind="response", versions=(1, 1), flexible=0)
class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    member_id: str | None = field(STRING, nullable="0+", default=None)
    member_epoch: int = field(INT32)
    heartbeat_interval_ms: int = field(INT32)
    assignment: Assignment | None = struct(Assignment, nullable="0+", default=None)
