"""ShareGroupDescribe (77): state, epochs and members of share groups (KIP-932)."""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import (
    BOOL,
    INT16,
    INT32,
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


@message(api_key=ApiKey.SHARE_GROUP_DESCRIBE, kind="request", versions=(1, 1), flexible=0)
class ShareGroupDescribeRequest(Message):
    group_ids: list[str] = array(STRING)
    include_authorized_operations: bool = field(BOOL)


@structure
class TopicPartitions:
    topic_id: Uuid = field(UUID)
    topic_name: str = field(STRING)
    partitions: list[int] = array(INT32)


@structure
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@structure
class Member:
    member_id: str = field(STRING)
    rack_id: str | None = field(STRING, nullable="0+", default=None)
    member_epoch: int = field(INT32)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = array(STRING)
    assignment: Assignment = struct(Assignment)


@structure
class DescribedGroup:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    group_id: str = field(STRING)
    group_state: str = field(STRING)
    group_epoch: int = field(INT32)
    assignment_epoch: int = field(INT32)
    assignor_name: str = field(STRING)
    members: list[Member] = array(Member)
    authorized_operations: int = field(INT32, default=-2147483648)


@message(api_key=ApiKey.SHARE_GROUP_DESCRIBE, kind="response", versions=(1, 1), flexible=0)
class ShareGroupDescribeResponse(Message):
    throttle_time_ms: int = field(INT32)
    groups: list[DescribedGroup] = array(DescribedGroup)
