"""Kafka's own coordinator classes for the tests that compare; started by the first test that asks."""

from collections.abc import Iterator

import pytest

from tests.group_coordinator.consumer.kafka_groups import KafkaGroups, kafka_groups


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaGroups]:
    """GroupBridge.java, running."""
    with kafka_groups() as groups:
        yield groups
