"""The image as records: what a snapshot of the metadata log holds (KIP-630).

Applying these records to an empty image gives the image back. Their order is Kafka's: features first, because
readers learn the metadata.version from them, then nodes, topics, configs, quotas, producer ids and access.
"""

from collections.abc import Iterator

from ottla.metadata.features import METADATA_VERSION, supports_directories
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.records import (
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    TopicRecord,
    ZkMigrationStateRecord,
)


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Every record needed to make the image anew."""
    yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.metadata_version)
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level)
    yield from image.brokers.values()
    yield from image.controllers.values()
    with_directories = supports_directories(image.metadata_version)
    for topic_name in image.topic_names():
        topic = image.topics_by_name[topic_name]
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for partition_id in sorted(topic.partitions):
            partition = topic.partitions[partition_id]
            yield partition.to_record(topic.topic_id, partition_id, with_directories=with_directories)
    for (resource_type, resource_name), values in image.configs.items():
        for name, value in values.items():
            yield ConfigRecord(
                resource_type=resource_type, resource_name=resource_name, name=name, value=value
            )
    for entity, quotas in image.client_quotas.items():
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        for key, quota in quotas.items():
            yield ClientQuotaRecord(entity=parts, key=key, value=quota, remove=False)
    if image.next_producer_id >= 0:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.acls.values()
    yield from image.scram_credentials.values()
    yield from image.delegation_tokens.values()
    if image.zk_migration_state:
        yield ZkMigrationStateRecord(zk_migration_state=image.zk_migration_state)
