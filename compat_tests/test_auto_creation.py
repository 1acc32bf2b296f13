"""Topics that come into being because somebody asks for them."""

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from compat_tests.clients import CLIENTS, Client, Message
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.eventually import eventually

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@each_client
def test_producing_creates_the_topic(
    client: Client, bootstrap: str, topic_name: str, admin: KafkaAdminClient
) -> None:
    """A producer's first record makes the topic with the broker's default of one partition."""
    assert client.produce(bootstrap, topic_name, [Message(b"k", b"v")]) == [0]
    [described] = admin.describe_topics([topic_name])
    assert [partition["partition_index"] for partition in described["partitions"]] == [0]
    assert [stored.value for stored in client.read(bootstrap, topic_name)] == [b"v"]


def test_invalid_names_are_not_created(bootstrap: str) -> None:
    """A producer to a name that no topic can have is told so."""
    with pytest.raises(KafkaException) as refused:
        ConfluentClient().produce(bootstrap, "not a topic", [Message(None, b"x")])
    assert refused.value.args[0].name() in ("TOPIC_EXCEPTION", "_UNKNOWN_TOPIC")


def test_consumers_may_ask_without_creating(bootstrap: str, topic_name: str) -> None:
    """With allow.auto.create.topics false the topic stays unknown; with true it is made."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    reader = Consumer({**settings, "allow.auto.create.topics": False})
    try:
        answer = reader.list_topics(topic_name, timeout=30).topics[topic_name]
        assert answer.error.name() == "UNKNOWN_TOPIC_OR_PART"
    finally:
        reader.close()
    listing = AdminClient({"bootstrap.servers": bootstrap})
    assert topic_name not in listing.list_topics(timeout=30).topics
    reader = Consumer({**settings, "allow.auto.create.topics": True})
    try:
        reader.list_topics(topic_name, timeout=30)
        eventually(lambda: topic_name in listing.list_topics(timeout=30).topics, True)
    finally:
        reader.close()
