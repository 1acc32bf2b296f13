"""FindCoordinator: found with the first answer, refused at once where there is nothing to find."""

import pytest

from compat_tests.raw_client import RawClient
from ottla.server.internal_topics import coordinator_partition, java_string_hash
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest


@pytest.mark.parametrize("version", range(7))
def test_the_first_answer_has_the_coordinator(version: int) -> None:
    """The offsets topic is made before the answer, so nobody has to ask twice."""
    with Broker() as broker, RawClient.to(broker.bootstrap) as raw:
        if version < 4:
            found = raw.send(FindCoordinatorRequest(key="g"), version)
        else:
            (found,) = raw.send(FindCoordinatorRequest(coordinator_keys=["g"]), version).coordinators
        assert (found.error_code, found.host, found.port) == (ErrorCode.NONE, broker.host, broker.port)


def test_transactions_are_refused_at_once(raw: RawClient) -> None:
    """With the error that clients do not retry, and the true reason as its text."""
    old = raw.send(FindCoordinatorRequest(key="t", key_type=1), 3)
    (new,) = raw.send(FindCoordinatorRequest(coordinator_keys=["t"], key_type=1), 4).coordinators
    for answer in (old, new):
        assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert answer.error_message == "This broker does not coordinate transactions."
        assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)


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
