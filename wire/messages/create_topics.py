"""CreateTopics (19): make topics, with a count of partitions or an assignment of replicas, and configs.

Version 4 lets the broker choose partitions and replication (-1), 5 is flexible and returns the configs
(KIP-525), 6 may answer THROTTLING_QUOTA_EXCEEDED, 7 returns the topic id.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
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
class CreatableReplicaAssignment:
    partition_index: int = field(INT32)
    broker_ids: list[int] = array(INT32)


@structure
class CreatableTopicConfig:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")


@structure
class CreatableTopic:
    name: str = field(STRING)
    num_partitions: int = field(INT32)
    replication_factor: int = field(INT16)
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@message(api_key=ApiKey.CREATE_TOPICS, kind="request", versions=(2, 7), flexible=5)
class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = field(INT32, default=60000)
    validate_only: bool = field(BOOL, "1+")


@structure
class CreatableTopicConfigs:
    name: str = field(STRING, "5+")
    value: str | None = field(STRING, "5+", nullable="5+")
    read_only: bool = field(BOOL, "5+")
    config_source: int = field(INT8, "5+", default=-1, ignorable=True)
    is_sensitive: bool = field(BOOL, "5+")


@structure
class CreatableTopicResult:
    name: str = field(STRING)
    topic_id: Uuid = field(UUID, "7+", ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, "1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = field(INT16, "5+", tag=0, ignorable=True)
    num_partitions: int = field(INT32, "5+", default=-1, ignorable=True)
    replication_factor: int = field(INT16, "5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, "5+", nullable="5+", ignorable=True
    )


@message(api_key=ApiKey.CREATE_TOPICS, kind="response", versions=(2, 7), flexible=5)
class CreateTopicsResponse(Message):
    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
