"""A broker comes, leads its partitions under new epochs, and goes."""

from typing import Any

import pytest

from ottla.config.listeners import Endpoint
from ottla.metadata.controller.broker_registration import (
    broker_endpoints,
    plan_broker_departure,
    plan_broker_registration,
)
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from ottla.metadata.records.frame import encode_record
from tests.metadata.images import (
    DIRECTORY,
    INCARNATION,
    OTHER_DIRECTORY,
    image_of,
    running_image,
    topic_records,
)

ID = b"orders.........."


def registration(image: MetadataImage, *, node_id: int = 1, next_offset: int = 20) -> Any:
    return plan_broker_registration(
        image,
        node_id=node_id,
        next_offset=next_offset,
        incarnation_id=INCARNATION,
        end_points=broker_endpoints([Endpoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092)]),
        rack="r1",
        log_dirs=[DIRECTORY],
    )


def come(image: MetadataImage) -> None:
    image.apply_all(registration(image).records, 30)


def go(image: MetadataImage) -> None:
    image.apply_all(plan_broker_departure(image, node_id=1).records, 40)


def test_registration_is_fenced_then_unfenced() -> None:
    """The epoch is the offset of the first record; afterwards the broker is up."""
    image = image_of()
    plan = registration(image, next_offset=20)
    first, second = plan.records
    assert isinstance(first, RegisterBrokerRecord)
    assert (first.broker_id, first.broker_epoch, first.incarnation_id, first.fenced) == (
        1,
        20,
        INCARNATION,
        True,
    )
    assert first.end_points == [
        BrokerEndpoint(name="PLAINTEXT", host="localhost", port=9092, security_protocol=0)
    ]
    assert (first.rack, first.log_dirs) == ("r1", [DIRECTORY])
    assert ("metadata.version", 7, 30) in [
        (feature.name, feature.min_supported_version, feature.max_supported_version)
        for feature in first.features
    ]
    assert second == BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=20, fenced=-1)
    assert plan.results == 20
    image.apply_all(plan.records, 21)
    assert not image.brokers[1].fenced


@pytest.mark.parametrize(("level", "expected"), [(30, 1), (22, 1), (21, 0)])
def test_a_directory_that_was_made_before_gets_its_features(level: int, expected: int) -> None:
    """Once, behind the registration, and only with a metadata.version for which Kafka would do so."""
    image = MetadataImage()
    image.apply(FeatureLevelRecord(name="metadata.version", feature_level=level))
    image.apply(RegisterBrokerRecord(broker_id=1))
    plan = registration(image, next_offset=20)
    assert isinstance(plan.records[0], RegisterBrokerRecord)
    image.apply_all(plan.records, 21)
    assert image.features.get("group.version", 0) == expected
    assert len(registration(image, next_offset=30).records) == 2


def test_a_feature_that_the_last_broker_left_off_stays_off() -> None:
    """Whoever downgraded transaction.version under a Kafka that knows it wants it so; a formatted directory too."""
    image = MetadataImage()
    image.apply(FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert len(registration(image, next_offset=20).records) == 2
    image.apply(RegisterBrokerRecord(broker_id=1, features=[BrokerFeature(name="transaction.version")]))
    image.apply_all(registration(image, next_offset=20).records, 21)
    assert "transaction.version" not in image.features
    assert image.features["group.version"] == 1


def test_every_start_is_a_new_leader_epoch() -> None:
    """Also after a crash, when the broker still counts as leader: its log may have lost its end."""
    image = running_image(*topic_records("orders"))
    before = image.topics_by_id[ID].partitions[0]
    come(image)
    after = image.topics_by_id[ID].partitions[0]
    assert (after.leader, after.isr, after.leader_epoch) == (1, (1,), before.leader_epoch + 1)


def test_orderly_departure_and_return() -> None:
    """Fenced and leaderless, but in sync; then leader again."""
    image = running_image(*topic_records("orders"))
    go(image)
    away = image.topics_by_id[ID].partitions[0]
    assert (away.leader, away.isr) == (-1, (1,))
    assert image.brokers[1].fenced
    assert image.brokers[1].in_controlled_shutdown
    assert plan_broker_departure(image, node_id=1).records == []
    come(image)
    back = image.topics_by_id[ID].partitions[0]
    assert (back.leader, back.isr, back.leader_epoch) == (1, (1,), away.leader_epoch + 1)
    assert not image.brokers[1].in_controlled_shutdown


def test_departure_under_eligible_leader_replicas() -> None:
    """The records are those that a real Kafka wrote when it stopped and started again."""
    image = running_image(*topic_records("orders"), elr=1)
    [_, change, _] = plan_broker_departure(image, node_id=1).records
    assert change == PartitionChangeRecord(
        partition_id=0, topic_id=ID, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]
    )
    go(image)
    [_, _, change] = registration(image).records
    assert change == PartitionChangeRecord(
        partition_id=0, topic_id=ID, isr=[1], leader=1, eligible_leader_replicas=[], last_known_elr=[]
    )


def test_partitions_of_others_are_left_alone() -> None:
    """Not a replica, or out of sync while another is in: no leadership."""
    image = image_of(topic_records("orders"))
    image.apply(
        PartitionChangeRecord(
            partition_id=0, topic_id=ID, replicas=[2], isr=[2], leader=-1, directories=[DIRECTORY]
        )
    )
    assert len(registration(image).records) == 2
    image.apply(
        PartitionChangeRecord(partition_id=0, topic_id=ID, replicas=[1, 2], directories=[DIRECTORY] * 2)
    )
    assert len(registration(image).records) == 2


def test_only_replica_leads_even_when_nobody_is_in_sync() -> None:
    """After a crash under eligible leader replicas Kafka may leave the in-sync set empty; the data is here."""
    image = image_of(topic_records("orders"))
    image.apply(PartitionChangeRecord(partition_id=0, topic_id=ID, isr=[], leader=-1))
    come(image)
    assert (image.topics_by_id[ID].partitions[0].leader, image.topics_by_id[ID].partitions[0].isr) == (
        1,
        (1,),
    )


def test_partition_follows_the_only_directory() -> None:
    """A partition assigned to a directory that is gone is told of the one there is."""
    image = image_of(topic_records("orders", directory=OTHER_DIRECTORY))
    come(image)
    assert image.topics_by_id[ID].partitions[0].directories == (DIRECTORY,)


def test_old_metadata_versions_get_no_directories() -> None:
    """Everything planned can be written under the oldest metadata.version."""
    image = image_of(topic_records("orders"), level=7)
    plan = registration(image)
    assert all(encode_record(record, 7) for record in plan.records)
    assert isinstance(plan.records[0], RegisterBrokerRecord)
    assert plan.records[0].log_dirs == []
