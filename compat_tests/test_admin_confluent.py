"""Administration with librdkafka's requests, which are in other versions than those of the other clients."""

import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from compat_tests.broker_process import BrokerProcess
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.clients.interface import Message
from compat_tests.conftest import NewTopic as MakeTopic
from compat_tests.eventually import eventually


@pytest.fixture(scope="session")
def librdkafka(bootstrap: str) -> AdminClient:
    """librdkafka's admin client."""
    return AdminClient({"bootstrap.servers": bootstrap})


def outcome(futures: Mapping[Any, "Future[Any]"]) -> str:
    """`OK`, or the name of the error, of a call about one thing."""
    [future] = futures.values()
    try:
        future.result(30)
    except KafkaException as error:
        return str(error.args[0].name())
    return "OK"


def configs(client: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    """All configs of one resource."""
    resource = ConfigResource(kind, name)
    return dict(client.describe_configs([resource])[resource].result(30))


def test_create_topics(librdkafka: AdminClient, topic_name: str) -> None:
    """Creation, and the errors as librdkafka names them."""

    def create(*arguments: Any, validate_only: bool = False, **options: Any) -> str:
        return outcome(
            librdkafka.create_topics([NewTopic(*arguments, **options)], validate_only=validate_only)
        )

    assert create(topic_name, 3, 1, validate_only=True) == "OK"
    assert create(topic_name, 3, 1, config={"retention.ms": "5000"}) == "OK"
    assert create(topic_name, 3, 1) == "TOPIC_ALREADY_EXISTS"
    assert create("bad name", 3, 1) == "TOPIC_EXCEPTION"
    assert create(topic_name + "-2", 3, 2) == "INVALID_REPLICATION_FACTOR"
    assert create(topic_name + "-2", 3, 1, config={"nope": "1"}) == "INVALID_CONFIG"
    eventually(lambda: len(librdkafka.list_topics(timeout=30).topics[topic_name].partitions), 3)
    assert configs(librdkafka, ResourceType.TOPIC, topic_name)["retention.ms"].value == "5000"


def test_metadata(librdkafka: AdminClient, new_topic: MakeTopic, broker: BrokerProcess) -> None:
    """What librdkafka learns about cluster, brokers and partitions."""
    topic = new_topic(partitions=2)
    metadata = librdkafka.list_topics(topic, timeout=30)
    [(node, *address)] = [(node.id, node.host, node.port) for node in metadata.brokers.values()]
    assert address == ["127.0.0.1", broker.port]
    assert metadata.controller_id == node
    partitions = metadata.topics[topic].partitions
    assert {key: (value.leader, value.replicas, value.isrs) for key, value in partitions.items()} == {
        0: (node, [node], [node]),
        1: (node, [node], [node]),
    }
    # Asking for one topic by name creates it. Kafka still calls it unknown in that first answer.
    other = f"{topic}-other"
    librdkafka.list_topics(other, timeout=30)
    eventually(lambda: other in librdkafka.list_topics(timeout=30).topics, True)


def test_describe_topics_and_cluster(librdkafka: AdminClient, new_topic: MakeTopic) -> None:
    """The describe calls agree with the metadata."""
    topic = new_topic(partitions=2)
    described = librdkafka.describe_topics(TopicCollection([topic]))[topic].result(30)
    assert (described.name, described.is_internal, len(described.partitions)) == (topic, False, 2)
    assert str(described.topic_id) not in ("", "AAAAAAAAAAAAAAAAAAAAAA")
    assert outcome(librdkafka.describe_topics(TopicCollection(["no-such-topic"]))) == "UNKNOWN_TOPIC_OR_PART"
    cluster = librdkafka.describe_cluster().result(30)
    assert cluster.cluster_id == librdkafka.list_topics(timeout=30).cluster_id
    assert [node.id for node in cluster.nodes] == [cluster.controller.id]


def test_create_partitions(librdkafka: AdminClient, new_topic: MakeTopic) -> None:
    """More partitions, never fewer."""
    topic = new_topic(partitions=2)
    assert outcome(librdkafka.create_partitions([NewPartitions(topic, 4)])) == "OK"
    assert outcome(librdkafka.create_partitions([NewPartitions(topic, 3)])) == "INVALID_PARTITIONS"
    unknown = NewPartitions("no-such-topic", 3)
    assert outcome(librdkafka.create_partitions([unknown])) == "UNKNOWN_TOPIC_OR_PART"


def test_delete_topics(librdkafka: AdminClient, new_topic: MakeTopic) -> None:
    """A deleted topic is unknown."""
    topic = new_topic()
    assert outcome(librdkafka.delete_topics([topic])) == "OK"
    eventually(lambda: topic in librdkafka.list_topics(timeout=30).topics, False)
    assert outcome(librdkafka.delete_topics([topic])) == "UNKNOWN_TOPIC_OR_PART"


def test_topic_configs(librdkafka: AdminClient, new_topic: MakeTopic) -> None:
    """Incremental changes keep the rest, the older request drops what it does not name."""
    topic = new_topic(**{"max.message.bytes": "2000"})
    kind = ResourceType.TOPIC

    def seen(*names: str) -> dict[str, tuple[str | None, object]]:
        described = configs(librdkafka, kind, topic)
        return {name: (described[name].value, described[name].source) for name in names}

    on_topic, default = ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DEFAULT_CONFIG.value
    change = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)
    resource = ConfigResource(kind, topic, incremental_configs=[change])
    assert outcome(librdkafka.incremental_alter_configs([resource])) == "OK"
    eventually(
        lambda: seen("cleanup.policy", "max.message.bytes"),
        {"cleanup.policy": ("delete,compact", on_topic), "max.message.bytes": ("2000", on_topic)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        replaced = ConfigResource(kind, topic, set_config={"max.message.bytes": "3000"})
        assert outcome(librdkafka.alter_configs([replaced])) == "OK"
    eventually(
        lambda: seen("cleanup.policy", "max.message.bytes", "retention.ms"),
        {
            "cleanup.policy": ("delete", default),
            "max.message.bytes": ("3000", on_topic),
            "retention.ms": ("604800000", default),
        },
    )
    unknown = ConfigResource(kind, "no-such-topic")
    assert outcome(librdkafka.describe_configs([unknown])) == "UNKNOWN_TOPIC_OR_PART"


def test_broker_describes_all_its_configs(librdkafka: AdminClient) -> None:
    """Every config of a Kafka 4.3 broker is there."""
    [node] = librdkafka.list_topics(timeout=30).brokers
    described = configs(librdkafka, ResourceType.BROKER, str(node))
    assert len(described) == 340
    assert described["socket.request.max.bytes"].value == "104857600"
    assert described["log.cleaner.threads"].is_read_only is False
    assert described["num.partitions"].is_read_only is True


def test_offsets_and_records(librdkafka: AdminClient, new_topic: MakeTopic, bootstrap: str) -> None:
    """ListOffsets, DeleteRecords and ElectLeaders as librdkafka sends them."""
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    moment = 1_700_000_000_000
    messages = [Message(None, b"x", (), moment + 10 * number) for number in range(5)]
    ConfluentClient().produce(bootstrap, topic, messages)

    def offset(spec: OffsetSpec) -> int:
        [future] = librdkafka.list_offsets({partition: spec}).values()
        return int(future.result(30).offset)

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 5
    assert offset(OffsetSpec.for_timestamp(moment + 11)) == 2
    assert offset(OffsetSpec.max_timestamp()) == 4
    [deleted] = librdkafka.delete_records([TopicPartition(topic, 0, 3)]).values()
    assert deleted.result(30).low_watermark == 3
    assert offset(OffsetSpec.earliest()) == 3
    assert outcome(librdkafka.delete_records([TopicPartition(topic, 0, 9)])) == "OFFSET_OUT_OF_RANGE"
    [error] = librdkafka.elect_leaders(ElectionType.PREFERRED, [partition]).result(30).values()
    assert error.name() == "ELECTION_NOT_NEEDED"
