"""ElectLeaders: the preferred replica (type 0), or an unclean one where nobody leads (type 1).

The preferred replica of a partition is the first one. Under an unclean election a replica that is up leads
even if it was not in sync, and the in-sync replicas are then it alone.
"""

from ottla.metadata.controller.plan import Plan
from ottla.metadata.image import MetadataImage, PartitionImage, TopicImage
from ottla.metadata.records import NO_LEADER, MetadataRecord, PartitionChangeRecord
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.wire.uuids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY

PREFERRED = 0
UNCLEAN = 1
RECOVERING = 1


def plan_elect_leaders(image: MetadataImage, request: ElectLeadersRequest) -> Plan[ElectLeadersResponse]:
    """The plan for an ElectLeaders request; KafkaError for an unknown type of election."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    records: list[MetadataRecord] = []
    results = []
    if request.topic_partitions is None:
        for name in image.topic_names():
            partitions = [
                result
                for partition_id in sorted(image.topics_by_name[name].partitions)
                if (result := _elect(image, name, partition_id, request.election_type, records)).error_code
                != ErrorCode.ELECTION_NOT_NEEDED
            ]
            results.append(ReplicaElectionResult(topic=name, partition_result=partitions))
    else:
        for topic in request.topic_partitions:
            partitions = [
                _elect(image, topic.topic, partition_id, request.election_type, records)
                for partition_id in topic.partitions
            ]
            results.append(ReplicaElectionResult(topic=topic.topic, partition_result=partitions))
    return Plan(records, ElectLeadersResponse(replica_election_results=results))


def _elect(
    image: MetadataImage, name: str, partition_id: int, election_type: int, records: list[MetadataRecord]
) -> PartitionResult:
    try:
        records.append(_election(image, name, partition_id, election_type))
    except KafkaError as error:
        return PartitionResult(partition_id=partition_id, error_code=error.code, error_message=error.message)
    return PartitionResult(partition_id=partition_id, error_message=None)


def _election(
    image: MetadataImage, name: str, partition_id: int, election_type: int
) -> PartitionChangeRecord:
    topic = image.topics_by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(partition_id)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{partition_id}")
    if election_type == PREFERRED:
        return _elect_preferred(image, topic, partition_id, partition)
    return _elect_unclean(image, topic, partition_id, partition)


def _elect_preferred(
    image: MetadataImage, topic: TopicImage, partition_id: int, partition: PartitionImage
) -> PartitionChangeRecord:
    preferred = partition.replicas[0] if partition.replicas else NO_LEADER
    if partition.leader == preferred:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
    if preferred not in partition.isr or not _is_up(image, partition, preferred):
        raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    return PartitionChangeRecord(topic_id=topic.topic_id, partition_id=partition_id, leader=preferred)


def _elect_unclean(
    image: MetadataImage, topic: TopicImage, partition_id: int, partition: PartitionImage
) -> PartitionChangeRecord:
    if partition.leader != NO_LEADER:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
    up = [replica for replica in partition.replicas if _is_up(image, partition, replica)]
    if not up:
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    in_sync = [replica for replica in up if replica in partition.isr]
    change = PartitionChangeRecord(
        topic_id=topic.topic_id, partition_id=partition_id, leader=(in_sync or up)[0]
    )
    if not in_sync:
        change.isr = [change.leader]
        change.leader_recovery_state = RECOVERING
        if partition.eligible_leader_replicas:
            change.eligible_leader_replicas = []
        if partition.last_known_elr:
            change.last_known_elr = []
    return change


def _is_up(image: MetadataImage, partition: PartitionImage, broker_id: int) -> bool:
    registration = image.brokers.get(broker_id)
    if registration is None or registration.fenced or registration.in_controlled_shutdown:
        return False
    directory = partition.directory_of(broker_id)
    if directory is None or directory in (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY):
        return True
    return not registration.log_dirs or directory in registration.log_dirs
