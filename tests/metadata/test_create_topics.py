"""CreateTopics: codes and messages are those that a real Kafka 4.3.0 with one broker gave to the same requests."""

from typing import Any

import pytest

from ottla.metadata.controller.create_topics import plan_create_topics
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import ConfigRecord, PartitionRecord, TopicRecord
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.uuids import ZERO_UUID
from tests.metadata.images import (
    DIRECTORY,
    OTHER_DIRECTORY,
    broker_config,
    image_of,
    register,
    running_image,
    topic_records,
    uuid_source,
)

Assignment = list[tuple[int, list[int]]]


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignment: Assignment | None = None,
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=i, broker_ids=b) for i, b in assignment or ()
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def assigned(name: str, *assignment: tuple[int, list[int]]) -> CreatableTopic:
    return topic(name, -1, -1, list(assignment))


def plan(
    image: MetadataImage, *topics: CreatableTopic, validate_only: bool = False, **properties: str
) -> Any:
    return plan_create_topics(
        image,
        CreateTopicsRequest(topics=list(topics), validate_only=validate_only),
        node_id=1,
        config=broker_config(**properties),
        new_uuid=uuid_source(),
    )


def answers(response: CreateTopicsResponse) -> dict[str, tuple[int, str | None]]:
    return {result.name: (result.error_code, result.error_message) for result in response.topics}


def test_records_of_a_new_topic() -> None:
    """A topic record, its configs, its partitions, in this order; the broker leads from epoch 0."""
    made = plan(running_image(), topic("orders", 2, 1, configs={"retention.ms": "5"}))
    assert made.records == [
        TopicRecord(name="orders", topic_id=b"id-0000000000001"),
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"),
        *(
            PartitionRecord(
                partition_id=partition_id,
                topic_id=b"id-0000000000001",
                replicas=[1],
                isr=[1],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[DIRECTORY],
            )
            for partition_id in (0, 1)
        ),
    ]


def test_result_of_a_new_topic() -> None:
    """Id, partitions, replicas and every config with its source."""
    made = plan(
        running_image(), topic("orders", 2, 1, configs={"retention.ms": "5"}), log_segment_bytes="2000000"
    )
    [result] = made.results.topics
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (b"id-0000000000001", 2, 1)
    assert (result.error_code, result.error_message, result.topic_config_error_code) == (0, None, 0)
    told = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
    assert told["retention.ms"] == ("5", 1)
    assert told["segment.bytes"] == ("2000000", 4)
    assert told["cleanup.policy"] == ("delete", 5)
    assert list(told) == sorted(told)
    assert len(told) == 33


def test_defaults_are_the_brokers() -> None:
    """-1 partitions and replicas take num.partitions and default.replication.factor."""
    made = plan(running_image(), topic("orders", -1, -1), num_partitions="4")
    [result] = made.results.topics
    assert (result.num_partitions, result.replication_factor) == (4, 1)


LONG_NAME = "a" * 250
BAD_CHARACTERS = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
UNREACHABLE = (
    "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only "
    "1 broker(s) are registered or some brokers have all their log directories cordoned."
)
REPLICAS_NOT_POSITIVE = "Replication factor must be larger than 0, or -1 to use the default value."
PARTITIONS_NOT_POSITIVE = "Number of partitions was set to an invalid non-positive value."
NOT_CONSECUTIVE = "partitions should be a consecutive 0-based integer sequence"


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (topic(""), "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: the empty string is not allowed"),
        (topic("."), "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: '.' is not allowed"),
        (topic(".."), "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: '..' is not allowed"),
        (
            topic(LONG_NAME),
            "INVALID_TOPIC_EXCEPTION",
            f"Topic name is invalid: the length of '{LONG_NAME}' is longer than the max allowed length 249",
        ),
        (topic("a b"), "INVALID_TOPIC_EXCEPTION", f"Topic name is invalid: 'a b' {BAD_CHARACTERS}"),
        (topic("ü"), "INVALID_TOPIC_EXCEPTION", f"Topic name is invalid: 'ü' {BAD_CHARACTERS}"),
        (topic("a\n"), "INVALID_TOPIC_EXCEPTION", f"Topic name is invalid: 'a\n' {BAD_CHARACTERS}"),
        (topic("there"), "TOPIC_ALREADY_EXISTS", "Topic 'there' already exists."),
        (topic("x.y_z"), "TOPIC_ALREADY_EXISTS", "Topic 'x.y_z' already exists."),
        (topic("x_y.z"), "INVALID_TOPIC_EXCEPTION", "Topic 'x_y.z' collides with existing topic: x.y_z"),
        (
            topic("__cluster_metadata"),
            "INVALID_REQUEST",
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (topic("t", 0), "INVALID_PARTITIONS", PARTITIONS_NOT_POSITIVE),
        (topic("t", -2), "INVALID_PARTITIONS", PARTITIONS_NOT_POSITIVE),
        (topic("t", 1, 0), "INVALID_REPLICATION_FACTOR", REPLICAS_NOT_POSITIVE),
        (topic("t", 0, -2), "INVALID_REPLICATION_FACTOR", REPLICAS_NOT_POSITIVE),
        (topic("t", 1, 3), "INVALID_REPLICATION_FACTOR", UNREACHABLE),
        (
            topic("t", 1, -1, [(0, [1])]),
            "INVALID_REQUEST",
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            topic("t", 1, 1, [(0, [1])]),
            "INVALID_REQUEST",
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            assigned("t", (0, [1]), (0, [1])),
            "INVALID_REPLICA_ASSIGNMENT",
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            assigned("t", (0, [9])),
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            assigned("t", (0, [1, 1])),
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            assigned("t", (0, [])),
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes an empty replica list.",
        ),
        (assigned("t", (1, [1])), "INVALID_REPLICA_ASSIGNMENT", NOT_CONSECUTIVE),
        (assigned("t", (0, [1]), (2, [1])), "INVALID_REPLICA_ASSIGNMENT", NOT_CONSECUTIVE),
        (topic("t", configs={"nope": "1"}), "INVALID_CONFIG", "Unknown topic config name: nope"),
        (
            topic("t", configs={"retention.ms": None, "segment.ms": None}),
            "INVALID_CONFIG",
            "Null value not supported for topic configs: retention.ms,segment.ms",
        ),
        (
            topic("t", configs={"retention.ms": "x"}),
            "INVALID_CONFIG",
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
    ],
)
def test_refused_as_kafka_refuses(asked: CreatableTopic, code: str, message: str) -> None:
    """The code, the message, no id and no record."""
    image = running_image(*topic_records("there"), *topic_records("x.y_z"))
    made = plan(image, asked)
    assert answers(made.results) == {asked.name: (ErrorCode[code], message)}
    assert made.records == []
    [result] = made.results.topics
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (ZERO_UUID, -1, -1)


def test_name_given_twice_is_refused_once() -> None:
    """Both entries are dropped, one answer is given, the others go on."""
    made = plan(running_image(), topic("a"), topic("b"), topic("a", 3))
    assert answers(made.results) == {
        "b": (0, None),
        "a": (ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
    }
    assert len(made.results.topics) == 2


def test_manual_assignment_in_any_order() -> None:
    """Partitions may be listed backwards."""
    made = plan(running_image(), assigned("t", (1, [1]), (0, [1])))
    assert answers(made.results) == {"t": (0, None)}
    assert [record.partition_id for record in made.records[1:]] == [0, 1]


def test_validate_only_writes_nothing() -> None:
    """The answer is the same, id included, but there is nothing to commit."""
    made = plan(running_image(), topic("t"), topic("bad name"), validate_only=True)
    assert answers(made.results)["t"] == (0, None)
    assert made.records == []


def test_too_many_partitions_fail_the_request() -> None:
    """More than 10,000 partitions in one request are refused as a whole, before anything is allocated."""
    for topics in ([topic("a", 10_001)], [topic("a", 6000), topic("b", 6000)], [topic("a", 2**31 - 1)]):
        with pytest.raises(KafkaError) as caught:
            plan(running_image(), *topics)
        assert caught.value.code == ErrorCode.POLICY_VIOLATION
        assert caught.value.detail == "Excessively large number of partitions per request."


def test_nothing_can_be_made_while_the_broker_is_fenced() -> None:
    """Without an active broker there is nobody to lead."""
    made = plan(image_of(), topic("t"))
    assert answers(made.results) == {
        "t": (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 1 time(s): All brokers are currently fenced, "
            "or have all their log directories cordoned.",
        )
    }


def test_partitions_spread_over_log_directories() -> None:
    """With several directories each replica goes where the fewest are."""
    image = image_of(topic_records("old", 3, directory=DIRECTORY))
    register(image, [DIRECTORY, OTHER_DIRECTORY])
    made = plan(image, topic("new", 5))
    chosen = [record.directories[0] for record in made.records[1:]]
    assert chosen.count(OTHER_DIRECTORY) == 4
    assert chosen.count(DIRECTORY) == 1


def test_planning_leaves_the_image_alone() -> None:
    """The image changes only when the records are applied."""
    image = running_image()
    made = plan(image, topic("t"))
    assert image.topic_names() == []
    image.apply_all(made.records, 50)
    assert image.topic_names() == ["t"]
