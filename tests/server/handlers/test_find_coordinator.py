"""FindCoordinator: found with the first answer."""

import pytest

from compat_tests.raw_client import RawClient
from ottla.server.internal_topics import TRANSACTIONS_TOPIC, coordinator_partition, java_string_hash
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest


@pytest.mark.parametrize("version", range(7))
def test_the_first_answer_has_the_coordinator(version: int) -> None:
    """The offsets topic is made before the answer, so nobody has to ask twice."""
    with Broker() as broker, RawClient.to(broker.bootstrap) as raw:
        if version < 4:
            found = raw.send(FindCoordinatorRequest(key="g"), version)
        else:
            (found,) = raw.send(FindCoordinatorRequest(coordinator_keys=["g"]), version).coordinators
        assert (found.error_code, found.host, found.port) == (ErrorCode.NONE, broker.host, broker.port)


def test_transactional_ids(raw: RawClient, broker: Broker) -> None:
    """Their topic is made when the first one is looked for, with the settings that Kafka gives it."""
    assert TRANSACTIONS_TOPIC not in topic_names(raw)
    old = raw.send(FindCoordinatorRequest(key="t", key_type=1), 3)
    (new,) = raw.send(FindCoordinatorRequest(coordinator_keys=["t"], key_type=1), 4).coordinators
    for answer in (old, new):
        assert (answer.error_code, answer.host, answer.port) == (ErrorCode.NONE, broker.host, broker.port)
    assert TRANSACTIONS_TOPIC in topic_names(raw)


def topic_names(raw: RawClient) -> set[str | None]:
    return {topic.name for topic in raw.send(MetadataRequest(topics=None), 12).topics}


def test_replicas_that_were_asked_for_must_be_there() -> None:
    """An explicit replication factor is kept to, though the topic can then not be made."""
    settings = {"offsets.topic.replication.factor": "3"}
    with Broker(settings) as broker, RawClient.to(broker.bootstrap) as raw:
        answer = raw.send(FindCoordinatorRequest(key="g"), 3)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("my-group", -1906497762),
        ("grüße", 98768023),
        ("polygenelubricants", 0),
        ("\U0001f600", 1772899),
    ],
)
def test_hash_of_java(text: str, value: int) -> None:
    """What `String.hashCode` gives, where the least integer counts as 0 for choosing partitions."""
    assert java_string_hash(text) == value
    assert coordinator_partition(text, 50) == abs(value) % 50
