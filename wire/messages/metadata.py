"""Metadata (3): the brokers, and the topics with their partitions, leaders and replicas.

In version 0 an empty list of topics asks for all; from 1 that is null, and empty means none. Version 4 may
forbid auto-creation, 5 has offline replicas, 7 leader epochs, 8 authorized operations, 9 is flexible, 10
carries topic ids, 12 lets a client ask by id with a null name, 13 has a top-level error (KIP-1102).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT16, INT32, STRING, UUID, Message, array, field, message, structure
from ottla.wire.uuids import Uuid


@structure
class MetadataRequestTopic:
    topic_id: Uuid = field(UUID, "10+", ignorable=True)
    name: str | None = field(STRING, nullable="10+")


@message(api_key=ApiKey.METADATA, kind="request", versions=(0, 13), flexible=9)
class MetadataRequest(Message):
    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = field(BOOL, "4+", default=True)
    include_cluster_authorized_operations: bool = field(BOOL, "8-10")
    include_topic_authorized_operations: bool = field(BOOL, "8+")


@structure
class MetadataResponseBroker:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, "1+", nullable="1+", default=None, ignorable=True)


@structure
class MetadataResponsePartition:
    error_code: int = field(INT16)
    partition_index: int = field(INT32)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32, "7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(INT32)
    isr_nodes: list[int] = array(INT32)
    offline_replicas: list[int] = array(INT32, "5+", ignorable=True)


@structure
class MetadataResponseTopic:
    error_code: int = field(INT16)
    name: str | None = field(STRING, nullable="12+")
    topic_id: Uuid = field(UUID, "10+", ignorable=True)
    is_internal: bool = field(BOOL, "1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = field(INT32, "8+", default=-0x80000000)


@message(api_key=ApiKey.METADATA, kind="response", versions=(0, 13), flexible=9)
class MetadataResponse(Message):
    throttle_time_ms: int = field(INT32, "3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = field(STRING, "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = field(INT32, "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = field(INT32, "8-10", default=-0x80000000)
    error_code: int = field(INT16, "13+", ignorable=True)
