"""ConsumerGroupHeartbeat (68): the whole life of a member of a consumer group (KIP-848).

Version 1 has regular expressions of the RE2 kind, and members make their ids themselves.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, STRING, UUID, Message, array, field, message, struct, structure
from ottla.wire.uuids import Uuid


@structure
class TopicPartitions:
    topic_id: Uuid = field(UUID)
    partitions: list[int] = array(INT32)


@message(api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, kind="request", versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatRequest(Message):
    group_id: str = field(STRING)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    instance_id: str | None = field(STRING, nullable="0+", default=None)
    rack_id: str | None = field(STRING, nullable="0+", default=None)
    rebalance_timeout_ms: int = field(INT32, default=-1)
    subscribed_topic_names: list[str] | None = array(STRING, nullable="0+", default=None)
    subscribed_topic_regex: str | None = field(STRING, "1+", nullable="1+", default=None)
    server_assignor: str | None = field(STRING, nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+", default=None)


@structure
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message(api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, kind="response", versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    member_id: str | None = field(STRING, nullable="0+", default=None)
    member_epoch: int = field(INT32)
    heartbeat_interval_ms: int = field(INT32)
    assignment: Assignment | None = struct(Assignment, nullable="0+", default=None)
