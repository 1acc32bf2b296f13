"""The request versions that clients of every Kafka since 0.11 send, as kafka-python would for such a broker."""

import pytest

from compat_tests.clients import Message
from compat_tests.clients.kafka_python_client import KafkaPythonClient
from compat_tests.conftest import NewTopic

RELEASES = [(0, 11), (1, 0), (1, 1), (2, 0), (2, 1), (2, 3), (2, 4), (2, 8), (3, 0), (3, 7), (4, 0), (4, 2)]
T0 = 1_700_000_000_000


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: ".".join(map(str, release)))
def test_a_client_for_that_release(release: tuple[int, ...], bootstrap: str, new_topic: NewTopic) -> None:
    """Produce, fetch, offsets and timestamps in the versions of that release."""
    topic = new_topic(partitions=2)
    client = KafkaPythonClient(api_version=release)
    messages = [
        Message(b"k", b"%d" % number, (("h", b"1"),), T0 + number, partition=number % 2)
        for number in range(6)
    ]
    assert client.produce(bootstrap, topic, messages, codec="lz4") == [0, 0, 1, 1, 2, 2]
    stored = client.read(bootstrap, topic, 1)
    assert [(s.offset, s.value, s.headers, s.timestamp_ms) for s in stored] == [
        (0, b"1", (("h", b"1"),), T0 + 1),
        (1, b"3", (("h", b"1"),), T0 + 3),
        (2, b"5", (("h", b"1"),), T0 + 5),
    ]
    assert client.watermarks(bootstrap, topic, 1) == (0, 3)
    assert client.offset_at(bootstrap, topic, T0 + 2, 1) == 1
    idempotent = [Message(None, b"once", partition=0)]
    assert client.produce(bootstrap, topic, idempotent, idempotent=True) == [3]
