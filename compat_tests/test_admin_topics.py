"""Topics, partitions, records and the cluster through kafka-python's admin client: the newest versions."""

import uuid
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import (
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from compat_tests.broker_process import BrokerProcess
from compat_tests.clients.interface import Message
from compat_tests.clients.kafka_python_client import KafkaPythonClient
from compat_tests.conftest import NewTopic
from compat_tests.eventually import eventually

TOPIC_EXCEPTION, TOPIC_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR = 17, 36, 37, 38
INVALID_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_TOPIC, ELECTION_NOT_NEEDED = 39, 40, 42, 3, 84


def node_id(admin: KafkaAdminClient) -> int:
    """The id of the only broker."""
    [broker] = admin.describe_cluster()["brokers"]
    return int(broker["broker_id"])


def create(admin: KafkaAdminClient, name: str, validate_only: bool = False, **wanted: Any) -> dict[str, Any]:
    """The answer for one topic, error or not."""
    [answer] = admin.create_topics({name: wanted}, validate_only=validate_only, raise_errors=False)["topics"]
    return dict(answer)


def test_create_topic_tells_what_was_made(admin: KafkaAdminClient, topic_name: str) -> None:
    """The answer has the id, the counts and every config with its source."""
    configs = {"cleanup.policy": "compact", "max.message.bytes": "2000"}
    made = create(admin, topic_name, num_partitions=2, replication_factor=1, configs=configs)
    assert (made["error_code"], made["error_message"]) == (0, None)
    assert (made["num_partitions"], made["replication_factor"]) == (2, 1)
    assert uuid.UUID(made["topic_id"]).int != 0
    assert len(made["configs"]) == 33
    sources = {name: config["config_source"] for name, config in made["configs"].items()}
    assert [name for name, source in sources.items() if source == "DYNAMIC_TOPIC_CONFIG"] == sorted(configs)
    assert made["configs"]["max.message.bytes"]["value"] == "2000"
    assert made["configs"]["retention.ms"]["value"] == "604800000"


def test_describe_topic(admin: KafkaAdminClient, topic_name: str) -> None:
    """Metadata names leader, replicas and epoch of each partition, and the same id by name and by id."""
    made = create(admin, topic_name, num_partitions=2)
    admin.wait_for_topics([topic_name])
    node = node_id(admin)
    [topic] = admin.describe_topics([topic_name])
    assert (topic["error_code"], topic["name"], topic["is_internal"]) == (0, topic_name, False)
    assert topic["topic_id"] == made["topic_id"]
    assert sorted(topic["partitions"], key=lambda partition: partition["partition_index"]) == [
        {
            "error_code": 0,
            "partition_index": index,
            "leader_id": node,
            "leader_epoch": 0,
            "replica_nodes": [node],
            "isr_nodes": [node],
            "offline_replicas": [],
        }
        for index in (0, 1)
    ]
    [by_id] = admin.describe_topics([uuid.UUID(made["topic_id"])])
    assert by_id["name"] == topic_name


def test_topic_appears_in_the_list_and_leaves_it(admin: KafkaAdminClient, topic_name: str) -> None:
    """Create, list, delete, and it is unknown again; made anew it has another id."""
    first = create(admin, topic_name)
    eventually(lambda: topic_name in admin.list_topics(), True)
    [deleted] = admin.delete_topics([topic_name])["topics"]
    assert (deleted["name"], deleted["error_code"]) == (topic_name, 0)
    eventually(lambda: topic_name in admin.list_topics(), False)
    [gone] = admin.describe_topics([topic_name])
    assert (gone["error_code"], gone["partitions"]) == (UNKNOWN_TOPIC, [])
    second = create(admin, topic_name)
    assert (second["error_code"], second["num_partitions"]) == (0, 1)
    assert second["topic_id"] != first["topic_id"]


def test_delete_topics_by_id_and_unknown(admin: KafkaAdminClient, topic_name: str) -> None:
    """Deleting works by id; an unknown name is an error of that topic alone."""
    made = create(admin, topic_name)
    answers = admin.delete_topics([uuid.UUID(made["topic_id"])], raise_errors=False)["topics"]
    assert [(answer["name"], answer["error_code"]) for answer in answers] == [(topic_name, 0)]
    [answer] = admin.delete_topics(["no-such-topic"], raise_errors=False)["topics"]
    assert (answer["name"], answer["error_code"]) == ("no-such-topic", UNKNOWN_TOPIC)


def test_create_existing_topic(admin: KafkaAdminClient, new_topic: NewTopic) -> None:
    """A second creation is refused and changes nothing."""
    topic = new_topic(partitions=3)
    again = create(admin, topic, num_partitions=5)
    assert (again["error_code"], again["num_partitions"]) == (TOPIC_EXISTS, -1)
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([topic])
    [described] = admin.describe_topics([topic])
    assert len(described["partitions"]) == 3


@pytest.mark.parametrize("name", ["bad name", "..", ".", "x" * 250, "", "umlaut-ä", "slash/"])
def test_create_topic_with_invalid_name(admin: KafkaAdminClient, name: str) -> None:
    """Names that could not be a directory are refused."""
    assert create(admin, name)["error_code"] == TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"replication_factor": 3}, INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 0}, INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 0}, INVALID_PARTITIONS),
        ({"num_partitions": -3}, INVALID_PARTITIONS),
        ({"configs": {"no.such.config": "1"}}, INVALID_CONFIG),
        ({"configs": {"retention.ms": "soon"}}, INVALID_CONFIG),
        ({"configs": {"retention.ms": None}}, INVALID_CONFIG),
        ({"configs": {"cleanup.policy": "zip"}}, INVALID_CONFIG),
        ({"configs": {"max.message.bytes": "-1"}}, INVALID_CONFIG),
        ({"configs": {"segment.bytes": "1"}}, INVALID_CONFIG),
        ({"configs": {"min.cleanable.dirty.ratio": "2"}}, INVALID_CONFIG),
        ({"assignments": {0: [77]}}, INVALID_ASSIGNMENT),
        ({"assignments": {0: []}}, INVALID_ASSIGNMENT),
        ({"assignments": {0: [77], 2: [77]}}, INVALID_ASSIGNMENT),
        ({"num_partitions": 2, "assignments": {0: [77]}}, INVALID_REQUEST),
    ],
    ids=str,
)
def test_create_topic_errors(
    admin: KafkaAdminClient, topic_name: str, wanted: dict[str, Any], code: int
) -> None:
    """What cannot be made is refused with Kafka's code, and is not made by halves."""
    answer = create(admin, topic_name, **wanted)
    assert (answer["error_code"], answer["topic_id"]) == (code, None)
    assert topic_name not in admin.list_topics()


def test_create_topic_with_assignment(admin: KafkaAdminClient, topic_name: str) -> None:
    """Replicas may be placed by hand; the number of partitions follows."""
    node = node_id(admin)
    made = create(admin, topic_name, assignments={0: [node], 1: [node], 2: [node]})
    assert (made["error_code"], made["num_partitions"], made["replication_factor"]) == (0, 3, 1)
    twice = create(admin, topic_name + "-twice", assignments={0: [node, node]})
    assert twice["error_code"] == INVALID_ASSIGNMENT


def test_validate_only_creates_nothing(admin: KafkaAdminClient, topic_name: str) -> None:
    """Validation answers as if it had been made."""
    answer = create(admin, topic_name, validate_only=True, num_partitions=4)
    assert (answer["error_code"], answer["num_partitions"], len(answer["configs"])) == (0, 4, 33)
    assert topic_name not in admin.list_topics()


def partition_error(admin: KafkaAdminClient, topic: str, wanted: Any, validate_only: bool = False) -> int:
    """The error code of one CreatePartitions."""
    answer = admin.create_partitions({topic: wanted}, validate_only=validate_only, raise_errors=False)
    [result] = answer.results
    assert result.name == topic
    return int(result.error_code)


def test_create_partitions(admin: KafkaAdminClient, new_topic: NewTopic, bootstrap: str) -> None:
    """Partitions are added, can be used at once, and their number never falls."""
    topic = new_topic(partitions=2)
    node = node_id(admin)
    assert partition_error(admin, topic, 6, validate_only=True) == 0
    assert partition_error(admin, topic, 3) == 0
    assert partition_error(admin, topic, {"count": 4, "assignments": [[node]]}) == 0
    assert partition_error(admin, topic, 4) == INVALID_PARTITIONS
    assert partition_error(admin, topic, 2) == INVALID_PARTITIONS
    assert partition_error(admin, topic, {"count": 5, "assignments": [[77]]}) == INVALID_ASSIGNMENT
    assert partition_error(admin, "no-such-topic", 2) == UNKNOWN_TOPIC
    eventually(lambda: len(admin.describe_topics([topic])[0]["partitions"]), 4)
    assert KafkaPythonClient().produce(bootstrap, topic, [Message(None, b"x", partition=3)]) == [0]


def test_delete_records(admin: KafkaAdminClient, new_topic: NewTopic, bootstrap: str) -> None:
    """The log start moves up, never back, and never past the end."""
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    client = KafkaPythonClient()
    client.produce(bootstrap, topic, [Message(None, b"%d" % n) for n in range(10)])
    for before, low_watermark in ((4, 4), (2, 4), (7, 7)):
        answer = admin.delete_records({partition: before})[partition]
        assert answer == {"partition_index": 0, "low_watermark": low_watermark, "error_code": 0}
    assert client.watermarks(bootstrap, topic) == (7, 10)
    assert [stored.value for stored in client.read(bootstrap, topic, start=7)] == [b"7", b"8", b"9"]
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({partition: 11})
    assert admin.delete_records({partition: -1})[partition]["low_watermark"] == 10
    assert client.watermarks(bootstrap, topic) == (10, 10)
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_records({TopicPartition("no-such-topic", 0): 1})


def test_message_larger_than_the_topic_allows(new_topic: NewTopic, bootstrap: str) -> None:
    """A batch above max.message.bytes is refused; one below it goes through."""
    topic = new_topic(**{"max.message.bytes": "2000"})
    client = KafkaPythonClient()
    with pytest.raises(MessageSizeTooLargeError):
        client.produce(bootstrap, topic, [Message(None, b"x" * 3000)])
    assert client.produce(bootstrap, topic, [Message(None, b"x" * 1900)]) == [0]


def test_list_offsets_by_spec(admin: KafkaAdminClient, new_topic: NewTopic, bootstrap: str) -> None:
    """Earliest, latest and the record with the greatest timestamp, which need not be the last."""
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    moment = 1_700_000_000_000
    [empty] = admin.list_partition_offsets({partition: OffsetSpec.MAX_TIMESTAMP}).values()
    assert (empty.offset, empty.timestamp) == (-1, -1)
    times = [moment, moment + 9, moment + 3]
    KafkaPythonClient().produce(bootstrap, topic, [Message(None, b"x", (), time) for time in times])
    found = {
        spec: admin.list_partition_offsets({partition: spec})[partition]
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetSpec.MAX_TIMESTAMP)
    }
    assert [(at.offset, at.timestamp) for at in found.values()] == [(0, -1), (3, -1), (1, moment + 9)]
    assert {at.leader_epoch for at in found.values()} == {0}


def test_describe_producers(admin: KafkaAdminClient, new_topic: NewTopic, bootstrap: str) -> None:
    """An idempotent producer leaves its id, epoch and last sequence number with the partition."""
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    assert admin.describe_producers([partition])[partition].active_producers == []
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    for number in range(3):
        producer.send(topic, b"%d" % number).get(30)
    producer.close()
    [state] = admin.describe_producers([partition])[partition].active_producers
    assert state.producer_id >= 0
    assert (state.producer_epoch, state.last_sequence) == (0, 2)
    assert (state.coordinator_epoch, state.current_transaction_start_offset) == (-1, -1)


def test_describe_topic_partitions_pages(admin: KafkaAdminClient, new_topic: NewTopic) -> None:
    """The answer stops at the limit and the cursor leads to the rest."""
    topic = new_topic(partitions=3)
    first = admin.describe_topic_partitions([topic, "no-such-topic"], response_partition_limit=2)
    assert first["next_cursor"] == {"topic_name": topic, "partition_index": 2}
    codes = {described["name"]: described["error_code"] for described in first["topics"]}
    assert codes[topic] == 0
    assert codes.get("no-such-topic", UNKNOWN_TOPIC) == UNKNOWN_TOPIC
    rest = admin.describe_topic_partitions([topic], cursor=first["next_cursor"])
    assert rest["next_cursor"] is None
    [described] = rest["topics"]
    assert [partition["partition_index"] for partition in described["partitions"]] == [2]


def test_elect_leaders(admin: KafkaAdminClient, new_topic: NewTopic) -> None:
    """With the preferred replica leading there is nothing to elect."""
    topic = new_topic()
    answer = admin.elect_leaders(0, {topic: [0, 5]}, raise_errors=False)
    [result] = answer.replica_election_results
    codes = {partition.partition_id: partition.error_code for partition in result.partition_result}
    assert codes == {0: ELECTION_NOT_NEEDED, 5: UNKNOWN_TOPIC}


def test_describe_cluster(admin: KafkaAdminClient, broker: BrokerProcess) -> None:
    """One broker, which is its own controller, at the address that clients use."""
    cluster = admin.describe_cluster()
    [node] = cluster["brokers"]
    assert (node["host"], node["port"], node["rack"], node["is_fenced"]) == (
        "127.0.0.1",
        broker.port,
        None,
        False,
    )
    assert cluster["controller_id"] == node["broker_id"]
    assert len(cluster["cluster_id"]) == 22
    assert cluster["cluster_id"] == admin.describe_cluster()["cluster_id"]


def test_describe_features(admin: KafkaAdminClient) -> None:
    """The metadata version is 4.3's, so that clients take the broker for what it is."""
    features = admin.describe_features()
    assert features["metadata.version"]["finalized"] == (30, 30)
    assert features["metadata.version"]["supported"] == (7, 30)


def test_describe_log_dirs(
    admin: KafkaAdminClient, new_topic: NewTopic, bootstrap: str, broker: BrokerProcess
) -> None:
    """The partition lies in the data directory and has the size of its records."""
    topic = new_topic()
    KafkaPythonClient().produce(bootstrap, topic, [Message(None, b"x" * 1000)])
    [answer] = admin.describe_log_dirs({topic: [0]})
    assert answer["broker"] == node_id(admin)
    [directory] = answer["log_dirs"]
    assert (directory["error_code"], directory["log_dir"]) == (0, str(broker.data_dir))
    [described] = directory["topics"]
    [partition] = described["partitions"]
    size = partition.pop("partition_size")
    assert partition == {"partition_index": 0, "offset_lag": 0, "is_future_key": False}
    assert size == (broker.data_dir / f"{topic}-0" / "00000000000000000000.log").stat().st_size
    assert 1060 < size < 1080
    assert directory["total_bytes"] > directory["usable_bytes"] > 0
