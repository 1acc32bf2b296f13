"""A small cluster for the tests of planning: one broker, number 1, and what else a test asks for."""

import itertools
from collections.abc import Callable, Iterable

from ottla.config.broker_config import BrokerConfig
from ottla.metadata.controller.broker_registration import plan_broker_registration
from ottla.metadata.image import TOPIC_RESOURCE, MetadataImage
from ottla.metadata.records import (
    BrokerEndpoint,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
)

NODE_ID = 1
DIRECTORY = b"directory-one-id"
OTHER_DIRECTORY = b"directory-two-id"
INCARNATION = b"incarnation-id-1"


def uuid_source() -> Callable[[], bytes]:
    """Ids that are easy to tell apart."""
    numbers = itertools.count(1)
    return lambda: b"id-%013d" % next(numbers)


def broker_config(**properties: str) -> BrokerConfig:
    """Kafka's defaults, but for these (with underscores for dots)."""
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerConfig.load({"listeners": "PLAINTEXT://127.0.0.1:9092", "node.id": "1", **given})


def image_of(records: Iterable[MetadataRecord] = (), *, level: int = 30, elr: int = 0) -> MetadataImage:
    """An image with these records and no broker."""
    image = MetadataImage()
    image.apply(FeatureLevelRecord(name="metadata.version", feature_level=level))
    if level >= 22:
        image.apply(FeatureLevelRecord(name="group.version", feature_level=1))
    if level >= 28:
        image.apply(FeatureLevelRecord(name="share.version", feature_level=1))
    if elr:
        image.apply(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=elr))
    for record in records:
        image.apply(record)
    return image


def register(
    image: MetadataImage, directories: Iterable[bytes] = (DIRECTORY,), next_offset: int = 10
) -> None:
    """Let broker 1 come up."""
    plan = plan_broker_registration(
        image,
        node_id=NODE_ID,
        next_offset=next_offset,
        incarnation_id=INCARNATION,
        end_points=[BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092)],
        rack=None,
        log_dirs=list(directories),
    )
    for record in plan.records:
        image.apply(record)


def topic_records(name: str, partitions: int = 1, *, directory: bytes = DIRECTORY) -> list[MetadataRecord]:
    """A topic on broker 1; its id is its name, filled up."""
    topic_id = name.encode().ljust(16, b".")[:16]
    made: list[MetadataRecord] = [TopicRecord(name=name, topic_id=topic_id)]
    for partition_id in range(partitions):
        made.append(
            PartitionRecord(
                partition_id=partition_id,
                topic_id=topic_id,
                replicas=[NODE_ID],
                isr=[NODE_ID],
                leader=NODE_ID,
                leader_epoch=0,
                partition_epoch=0,
                directories=[directory],
            )
        )
    return made


def topic_config(topic: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic, name=name, value=value)


def running_image(*records: MetadataRecord, elr: int = 0) -> MetadataImage:
    """An image with broker 1 up and these records."""
    image = image_of(records, elr=elr)
    register(image)
    return image
