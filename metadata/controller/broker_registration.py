"""This broker comes and goes: its registration, its partitions' leadership, its orderly departure.

A start registers a new incarnation, fenced, with the record's offset as broker epoch, then unfences it and
lets it lead its partitions, each under a new leader epoch; features that Ottla did not serve when the directory was
made get their levels. A stop gives the leadership up and fences the
broker. With eligible leader replicas switched on (KIP-966, as in every new directory) the broker
leaves the in-sync set when it stops and is remembered as eligible. Partitions whose log cannot be served, or
whose log directory has failed, have no leader until the broker is started with them again.
"""

from collections.abc import Collection, Mapping, Sequence

from ottla.config.listeners import Endpoint
from ottla.metadata import features
from ottla.metadata.controller.plan import Plan
from ottla.metadata.image import MetadataImage, PartitionImage
from ottla.metadata.records import (
    NO_LEADER,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from ottla.metadata.records.nodes import FENCE, IN_CONTROLLED_SHUTDOWN, UNFENCE
from ottla.wire.uuids import Uuid

PartitionKey = tuple[Uuid, int]

_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


def broker_endpoints(endpoints: Sequence[Endpoint]) -> list[BrokerEndpoint]:
    """Advertised listeners as a registration tells them."""
    return [
        BrokerEndpoint(
            name=endpoint.name,
            host=endpoint.host,
            port=endpoint.port,
            security_protocol=_SECURITY_PROTOCOLS[endpoint.security_protocol],
        )
        for endpoint in endpoints
    ]


def plan_broker_registration(
    image: MetadataImage,
    *,
    node_id: int,
    next_offset: int,
    incarnation_id: Uuid,
    end_points: list[BrokerEndpoint],
    rack: str | None,
    log_dirs: Sequence[Uuid],
    homes: Mapping[PartitionKey, Uuid] | None = None,
) -> Plan[int]:
    """Register, unfence and lead. The answer is the broker epoch: the offset of the first record, which must
    therefore be appended at `next_offset`. `homes` tells which partitions can be led and where their logs are;
    without it, all can and lie where the metadata says."""
    knows_directories = features.supports_directories(image.metadata_version)
    knows_cordoned = features.register_broker_version(image.metadata_version) >= 4
    records: list[MetadataRecord] = [
        RegisterBrokerRecord(
            broker_id=node_id,
            incarnation_id=incarnation_id,
            broker_epoch=next_offset,
            end_points=end_points,
            features=[
                BrokerFeature(
                    name=name,
                    min_supported_version=feature.min_version,
                    max_supported_version=feature.max_version,
                )
                for name, feature in features.SUPPORTED_FEATURES.items()
            ],
            rack=rack,
            fenced=True,
            log_dirs=list(log_dirs) if knows_directories else [],
            cordoned_log_dirs=[] if knows_cordoned else None,
        ),
        BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=next_offset, fenced=UNFENCE),
        *(
            FeatureLevelRecord(name=name, feature_level=level)
            for name, level in features.missing_features(
                image.features, image.metadata_version, _known_features(image, node_id)
            ).items()
        ),
    ]
    only_directory = log_dirs[0] if len(log_dirs) == 1 else None
    for topic in image.topics_by_name.values():
        for partition_id, partition in topic.partitions.items():
            if node_id not in partition.replicas:
                continue
            home = only_directory
            if homes is not None:
                home = homes.get((topic.topic_id, partition_id))
                if home is None:
                    if partition.leader == node_id:
                        records.append(_give_up(image, topic.topic_id, partition_id, partition, node_id))
                    continue
            change = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=partition_id)
            if _lead(change, partition, node_id, home if knows_directories else None):
                records.append(change)
    return Plan(records, next_offset)


def _known_features(image: MetadataImage, node_id: int) -> set[str]:
    """What the last broker on this directory knew; a directory that none has used has the levels it is to have."""
    last = image.brokers.get(node_id)
    return set(features.SUPPORTED_FEATURES) if last is None else {each.name for each in last.features}


def _lead(change: PartitionChangeRecord, partition: PartitionImage, node_id: int, home: Uuid | None) -> bool:
    """Let `node_id` lead if it may: it is in sync, or nobody is and it is the only replica or an eligible one."""
    if node_id not in partition.isr:
        eligible = partition.eligible_leader_replicas or partition.last_known_elr
        if partition.isr or (len(partition.replicas) > 1 and node_id not in eligible):
            return False
        change.isr = [node_id]
    change.leader = node_id
    if partition.eligible_leader_replicas:
        change.eligible_leader_replicas = []
    if partition.last_known_elr:
        change.last_known_elr = []
    if home is not None and partition.directory_of(node_id) != home:
        change.directories = [
            home if replica == node_id else directory
            for replica, directory in zip(partition.replicas, partition.directories, strict=True)
        ]
    return True


def plan_broker_departure(image: MetadataImage, *, node_id: int) -> Plan[None]:
    """Give up every leadership and fence the broker: the last records before an orderly stop."""
    registration = image.brokers.get(node_id)
    if registration is None or registration.fenced:
        return Plan([], None)
    epoch = registration.broker_epoch
    records: list[MetadataRecord] = [
        BrokerRegistrationChangeRecord(
            broker_id=node_id, broker_epoch=epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
        )
    ]
    for topic in image.topics_by_name.values():
        for partition_id, partition in topic.partitions.items():
            if partition.leader != node_id:
                continue
            records.append(_give_up(image, topic.topic_id, partition_id, partition, node_id))
    records.append(BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=epoch, fenced=FENCE))
    return Plan(records, None)


def plan_directories_offline(
    image: MetadataImage, *, node_id: int, online: Sequence[Uuid], partitions: Collection[PartitionKey]
) -> Plan[None]:
    """Log directories have failed: only `online` ones are left, and nobody leads these partitions."""
    registration = image.brokers[node_id]
    records: list[MetadataRecord] = []
    for topic_id, partition_id in partitions:
        topic = image.topics_by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(partition_id)
        if partition is not None and partition.leader == node_id:
            records.append(_give_up(image, topic_id, partition_id, partition, node_id))
    if registration.log_dirs and set(registration.log_dirs) != set(online):
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=node_id, broker_epoch=registration.broker_epoch, log_dirs=list(online)
            )
        )
    return Plan(records, None)


def _give_up(
    image: MetadataImage, topic_id: Uuid, partition_id: int, partition: PartitionImage, node_id: int
) -> PartitionChangeRecord:
    """Leave a partition without a leader."""
    change = PartitionChangeRecord(topic_id=topic_id, partition_id=partition_id, leader=NO_LEADER)
    if image.elr_enabled:
        change.isr = [replica for replica in partition.isr if replica != node_id]
        change.eligible_leader_replicas = [node_id]
        change.last_known_elr = [node_id]
    return change
