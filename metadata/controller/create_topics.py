"""CreateTopics: which of the asked topics can be made, and the records that make them.

Order of judgement as in Kafka: names given twice, the reserved name, the total size of the request, then
per topic its name, a collision, an existing topic, null configs, the configs, the replicas. All topics that
can be made are made in one atomic batch: a TopicRecord, its ConfigRecords, its PartitionRecords.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from ottla.config.broker_config import BrokerConfig
from ottla.config.topic_rules import validate_topic_configs
from ottla.metadata.controller.effective_configs import effective_topic_configs
from ottla.metadata.controller.placement import Placement
from ottla.metadata.controller.plan import MAX_RECORDS_PER_CHANGE, Plan, check_size
from ottla.metadata.ids import usable_uuid
from ottla.metadata.image import TOPIC_RESOURCE, MetadataImage
from ottla.metadata.records import ConfigRecord, MetadataRecord, TopicRecord
from ottla.metadata.topic_names import (
    CLUSTER_METADATA_TOPIC,
    has_collision_characters,
    topic_name_error,
    unify_collision_characters,
)
from ottla.wire.dataclass import dataclass
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.uuids import Uuid


@dataclass(frozen=True, slots=True)
class _Context:
    """What every topic of a request is planned with."""

    image: MetadataImage
    node_id: int
    config: BrokerConfig
    placement: Placement
    new_uuid: Callable[[], Uuid]


def plan_create_topics(
    image: MetadataImage,
    request: CreateTopicsRequest,
    *,
    node_id: int,
    config: BrokerConfig,
    new_uuid: Callable[[], Uuid],
) -> Plan[CreateTopicsResponse]:
    """The plan for a CreateTopics request; KafkaError when the request fails as a whole."""
    times = Counter(topic.name for topic in request.topics)
    topics = [
        topic for topic in request.topics if times[topic.name] == 1 and topic.name != CLUSTER_METADATA_TOPIC
    ]
    _check_total_partitions(topics, config.get_int("num.partitions"))
    context = _Context(image, node_id, config, Placement(image, node_id), new_uuid)
    records: list[MetadataRecord] = []
    results = []
    for topic in topics:
        try:
            result, topic_records = _plan_topic(context, topic)
        except KafkaError as error:
            result = _refused(topic.name, error.code, error.detail)
        else:
            records += topic_records
        results.append(result)
    check_size(records)
    for name, count in times.items():
        if count > 1:
            results.append(_refused(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif name == CLUSTER_METADATA_TOPIC:
            results.append(
                _refused(name, ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
            )
    return Plan([] if request.validate_only else records, CreateTopicsResponse(topics=results))


def _check_total_partitions(topics: Sequence[CreatableTopic], default_partitions: int) -> None:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += default_partitions
        else:
            total += max(0, topic.num_partitions)
    if total > MAX_RECORDS_PER_CHANGE:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _plan_topic(
    context: _Context, topic: CreatableTopic
) -> tuple[CreatableTopicResult, list[MetadataRecord]]:
    image, name = context.image, topic.name
    if name in image.topics_by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    _check_name(image, name)
    configs = _checked_configs(context, topic)
    if topic.assignments:
        assignments = _manual_assignments(context.placement, topic)
    else:
        assignments = _chosen_assignments(context, topic)
    topic_id = usable_uuid(context.new_uuid)
    records: list[MetadataRecord] = [TopicRecord(name=name, topic_id=topic_id)]
    for key, value in configs.items():
        records.append(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=name, name=key, value=value))
    for partition_id, replicas in enumerate(assignments):
        records.append(context.placement.partition_record(topic_id, partition_id, replicas))
    result = CreatableTopicResult(
        name=name,
        topic_id=topic_id,
        num_partitions=len(assignments),
        replication_factor=len(assignments[0]),
        error_message=None,
        configs=_told_configs(context, configs),
    )
    return result, records


def _check_name(image: MetadataImage, name: str) -> None:
    collision = None
    if has_collision_characters(name):
        collision = next(iter(image.colliding_names.get(unify_collision_characters(name), ())), None)
    if collision is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {collision}"
        )
    problem = topic_name_error(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _checked_configs(context: _Context, topic: CreatableTopic) -> dict[str, str]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
        )
    configs = {config.name: config.value for config in topic.configs if config.value is not None}
    if configs:
        validate_topic_configs(configs, context.config)
    return configs


def _manual_assignments(placement: Placement, topic: CreatableTopic) -> list[list[int]]:
    if topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.num_partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    assigned: dict[int, list[int]] = {}
    replication_factor = None
    for assignment in topic.assignments:
        partition_id, replicas = assignment.partition_index, assignment.broker_ids
        if partition_id in assigned:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {partition_id}",
            )
        placement.check_manual(replicas, replication_factor)
        replication_factor = len(replicas)
        if not placement.in_sync(replicas):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"All brokers specified in the manual partition assignment for partition {partition_id}"
                " are fenced or in controlled shutdown.",
            )
        assigned[partition_id] = replicas
    if any(partition_id not in assigned for partition_id in range(len(assigned))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [assigned[partition_id] for partition_id in range(len(assigned))]


def _chosen_assignments(context: _Context, topic: CreatableTopic) -> list[list[int]]:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    partitions = topic.num_partitions
    if partitions == -1:
        partitions = context.config.get_int("num.partitions")
    replication_factor = topic.replication_factor
    if replication_factor == -1:
        replication_factor = context.config.get_int("default.replication.factor")
    try:
        return context.placement.choose(partitions, replication_factor)
    except KafkaError as error:
        raise KafkaError(
            error.code, f"Unable to replicate the partition {replication_factor} time(s): {error.detail}"
        ) from None


def _told_configs(context: _Context, configs: dict[str, str]) -> list[CreatableTopicConfigs]:
    image = context.image
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=None if entry.is_sensitive else entry.value,
            read_only=False,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in effective_topic_configs(
            configs, image.broker_configs(context.node_id), image.broker_configs(None), context.config
        )
    ]


def _refused(name: str, code: ErrorCode, detail: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=detail)
