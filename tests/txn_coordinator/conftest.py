"""Kafka's own record classes for the tests that compare bytes; started by the first test that asks."""

from collections.abc import Iterator

import pytest

from compat_tests.kafka.message_bridge import MessageBridge, message_bridge


@pytest.fixture(scope="session")
def kafka_messages() -> Iterator[MessageBridge]:
    with message_bridge() as bridge:
        yield bridge
