"""CreatePartitions: more partitions for existing topics, with the replication factor they have."""

from collections import Counter

from ottla.metadata.controller.placement import Placement
from ottla.metadata.controller.plan import MAX_RECORDS_PER_CHANGE, Plan, check_size
from ottla.metadata.image import MetadataImage, TopicImage
from ottla.metadata.records import MetadataRecord
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def plan_create_partitions(
    image: MetadataImage, request: CreatePartitionsRequest, *, node_id: int
) -> Plan[CreatePartitionsResponse]:
    """The plan for a CreatePartitions request; KafkaError when it fails as a whole."""
    times = Counter(topic.name for topic in request.topics)
    results = [
        CreatePartitionsTopicResult(
            name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name."
        )
        for name, count in times.items()
        if count > 1
    ]
    placement = Placement(image, node_id)
    records: list[MetadataRecord] = []
    for topic in request.topics:
        if times[topic.name] > 1:
            continue
        result = CreatePartitionsTopicResult(name=topic.name)
        try:
            records += _plan_topic(image, placement, topic)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.detail
        results.append(result)
    check_size(records)
    return Plan([] if request.validate_only else records, CreatePartitionsResponse(results=results))


def _plan_topic(
    image: MetadataImage, placement: Placement, topic: CreatePartitionsTopic
) -> list[MetadataRecord]:
    found = image.topics_by_name.get(topic.name)
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(found.partitions)
    if topic.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if topic.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); "
            f"{topic.count} would not be an increase.",
        )
    return [
        placement.partition_record(found.topic_id, partition_id, replicas)
        for partition_id, replicas in enumerate(_assignments(placement, topic, found), present)
    ]


def _assignments(placement: Placement, topic: CreatePartitionsTopic, found: TopicImage) -> list[list[int]]:
    present = len(found.partitions)
    additional = topic.count - present
    replication_factor = len(next(iter(found.partitions.values())).replicas)
    if topic.assignments is None:
        if additional > MAX_RECORDS_PER_CHANGE:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
            )
        return placement.choose(additional, replication_factor)
    if len(topic.assignments) != additional:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(topic.assignments)} assignment(s) were specified.",
        )
    chosen = []
    for partition_id, assignment in enumerate(topic.assignments, present):
        placement.check_manual(assignment.broker_ids, replication_factor)
        if not placement.in_sync(assignment.broker_ids):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"All brokers specified in the manual partition assignment for partition {partition_id}"
                " are fenced or in controlled shutdown.",
            )
        chosen.append(assignment.broker_ids)
    return chosen
