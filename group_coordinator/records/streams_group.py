"""Records of streams groups (KIP-1071) in `__consumer_offsets`: group, topology and members."""

from __future__ import annotations

from ottla.wire.schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    Message,
    array,
    field,
    record,
    struct,
    structure,
)


@record(api_key=17, versions=(0, 0))
class StreamsGroupMetadataKey(Message):
    group_id: str = field(STRING, "0")


@structure
class LastAssignmentConfig:
    key: str = field(STRING)
    value: str = field(STRING)


@record(api_key=17, versions=(0, 0), flexible=0)
class StreamsGroupMetadataValue(Message):
    epoch: int = field(INT32)
    metadata_hash: int = field(INT64)
    validated_topology_epoch: int = field(INT32, default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(
        LastAssignmentConfig, nullable="0+", tag=1
    )


@record(api_key=19, versions=(0, 0))
class StreamsGroupMemberMetadataKey(Message):
    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


@structure
class Endpoint:
    host: str = field(STRING)
    port: int = field(UINT16)


@structure
class KeyValue:
    key: str = field(STRING)
    value: str = field(STRING)


@record(api_key=19, versions=(0, 0), flexible=0)
class StreamsGroupMemberMetadataValue(Message):
    instance_id: str | None = field(STRING, nullable="0+")
    rack_id: str | None = field(STRING, nullable="0+")
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    rebalance_timeout_ms: int = field(INT32, default=-1)
    topology_epoch: int = field(INT32)
    process_id: str = field(STRING)
    user_endpoint: Endpoint | None = struct(Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] = array(KeyValue)


@record(api_key=23, versions=(0, 0))
class StreamsGroupTopologyKey(Message):
    group_id: str = field(STRING, "0")


@structure
class TopicConfig:
    key: str = field(STRING)
    value: str = field(STRING)


@structure
class TopicInfo:
    name: str = field(STRING)
    partitions: int = field(INT32)
    replication_factor: int = field(INT16)
    topic_configs: list[TopicConfig] = array(TopicConfig)


@structure
class CopartitionGroup:
    source_topics: list[int] = array(INT16)
    source_topic_regex: list[int] = array(INT16)
    repartition_source_topics: list[int] = array(INT16)


@structure
class Subtopology:
    subtopology_id: str = field(STRING)
    source_topics: list[str] = array(STRING)
    source_topic_regex: list[str] = array(STRING)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(STRING)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


@record(api_key=23, versions=(0, 0), flexible=0)
class StreamsGroupTopologyValue(Message):
    epoch: int = field(INT32)
    subtopologies: list[Subtopology] = array(Subtopology)
