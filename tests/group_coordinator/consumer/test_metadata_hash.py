"""The hash of a group's topics: bit for bit Kafka's."""

import pytest

from ottla.group_coordinator.consumer.metadata_hash import metadata_hash
from ottla.group_coordinator.topics import Topic
from tests.group_coordinator.consumer.kafka_groups import KafkaGroups
from tests.group_coordinator.driver import FakeTopics

SOME = Topic("orders", b"\x01" * 16, 3)
RACKS = Topic("räcks", b"\xfe" * 16, 2, (("b", "a"), ("zone-𝒵",)))
LONG = Topic("x" * 249, bytes(range(16)), 100)


@pytest.mark.parametrize("topics", [[], [SOME], [RACKS], [LONG], [SOME, RACKS, LONG]], ids=len)
def test_the_hash_is_kafkas(kafka: KafkaGroups, topics: list[Topic]) -> None:
    """So a directory that moves between the brokers does not make its groups rebalance."""
    names = [topic.name for topic in topics] + ["not-there"]
    assert metadata_hash(names, FakeTopics(*topics)) == kafka.hash(topics)
