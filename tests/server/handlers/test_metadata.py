"""Metadata where Ottla does better than Kafka or has settings of its own: creation, listeners, racks."""

import threading
from pathlib import Path

from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, wait_until_served
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse


def ask(raw: RawClient, *names: str | None, version: int = 12, **more: bool) -> MetadataResponse:
    """Metadata of topics by name."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)
    response = raw.send(request, version)
    assert isinstance(response, MetadataResponse)
    return response


def served_partitions(raw: RawClient, topic: str, count: int) -> set[int]:
    """The errors of the leaders of a topic's partitions."""
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
    (answered,) = raw.send(request, 7).topics
    return {partition.error_code for partition in answered.partitions}


def test_creation_is_done_with_the_first_answer(raw: RawClient) -> None:
    """The topic is there with its leaders, and they serve it."""
    (topic,) = ask(raw, "at-once").topics
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 1)
    assert topic.partitions[0].leader_id >= 0
    assert served_partitions(raw, "at-once", 1) == {ErrorCode.NONE}


def test_creation_follows_the_settings() -> None:
    """num.partitions counts, and auto.create.topics.enable=false forbids."""
    with Broker(num_partitions=3) as broker, RawClient.to(broker.bootstrap) as raw:
        assert len(ask(raw, "three").topics[0].partitions) == 3
    with Broker(auto_create_topics_enable=False) as broker, RawClient.to(broker.bootstrap) as raw:
        assert ask(raw, "none").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_creation_that_fails_leaves_the_topic_unknown() -> None:
    """More replicas than brokers: clients hear that there is no such topic, as from Kafka."""
    with Broker(default_replication_factor=3) as broker, RawClient.to(broker.bootstrap) as raw:
        assert ask(raw, "t").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_internal_topics_are_created_as_such(raw: RawClient) -> None:
    """Asking for the offsets topic by name makes it with its own number of partitions."""
    (topic,) = ask(raw, "__consumer_offsets").topics
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (ErrorCode.NONE, True, 50)


def test_neither_name_nor_id(raw: RawClient) -> None:
    """Nothing to look up is an invalid request, told for the topic and from version 13 on for all."""
    for version in (12, 13):
        response = ask(raw, None, version=version)
        assert response.topics[0].error_code == ErrorCode.INVALID_REQUEST
        assert response.error_code == (ErrorCode.INVALID_REQUEST if version == 13 else ErrorCode.NONE)


def test_a_partition_that_is_told_is_served(broker: Broker) -> None:
    """Whoever hears of a topic while it is being made can use all of it at once."""
    count, rounds = 40, 5
    surprises: list[object] = []
    stop = threading.Event()

    def watch() -> None:
        with RawClient.to(broker.bootstrap) as raw:
            while not stop.is_set():
                response = raw.send(MetadataRequest(topics=None), 12)
                for topic in response.topics:
                    if topic.name.startswith("told-") and topic.name not in seen:
                        seen.add(topic.name)
                        errors = served_partitions(raw, topic.name, count)
                        if errors != {ErrorCode.NONE} or len(topic.partitions) != count:
                            surprises.append((topic.name, errors))

    seen: set[str] = set()
    watcher = threading.Thread(target=watch)
    watcher.start()
    with RawClient.to(broker.bootstrap) as raw:
        for number in range(rounds):
            topic = CreatableTopic(name=f"told-{number}", num_partitions=count, replication_factor=1)
            raw.send(CreateTopicsRequest(topics=[topic]), 7)
    stop.set()
    watcher.join()
    assert surprises == []


def test_each_listener_tells_its_own_address() -> None:
    """Clients get the advertised host and port of the listener they use; a rack is told from version 1 on."""
    settings = {
        "listeners": "ONE://127.0.0.1:0,TWO://127.0.0.1:0",
        "advertised.listeners": "ONE://one.example:1111,TWO://two.example:2222",
        "listener.security.protocol.map": "ONE:PLAINTEXT,TWO:PLAINTEXT",
        "inter.broker.listener.name": "ONE",
        "broker.rack": "r1",
    }
    with Broker(settings) as broker:
        addresses = []
        for endpoint in broker.endpoints:
            with RawClient(endpoint.host, endpoint.port) as raw:
                (node,) = ask(raw).brokers
                addresses.append((node.host, node.port, node.rack))
                (old,) = raw.send(MetadataRequest(topics=[]), 0).brokers
                assert (old.host, old.port, old.rack) == (node.host, node.port, None)
        assert addresses == [("one.example", 1111, "r1"), ("two.example", 2222, "r1")]


def test_topics_survive_a_restart(tmp_path: Path) -> None:
    """The same id, partitions and leaders after the broker came back on its directory."""
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        topic_id = create_topic(raw, "kept", partitions=3)
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        (topic,) = ask(raw, "kept", allow_auto_topic_creation=False).topics
        assert (topic.topic_id, len(topic.partitions)) == (topic_id, 3)
        wait_until_served(raw, "kept", 3)
