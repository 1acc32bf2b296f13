"""CreatePartitions: codes and messages are those that a real Kafka 4.3.0 with one broker gave."""

from typing import Any

import pytest

from ottla.metadata.controller.create_partitions import plan_create_partitions
from ottla.metadata.records import PartitionRecord
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.metadata.images import DIRECTORY, running_image, topic_records


def topic(name: str, count: int, *assignments: list[int], assigned: bool = False) -> CreatePartitionsTopic:
    listed = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=listed if listed or assigned else None)


def plan(*topics: CreatePartitionsTopic, validate_only: bool = False) -> Any:
    image = running_image(*topic_records("orders", 2))
    request = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
    return plan_create_partitions(image, request, node_id=1)


@pytest.mark.parametrize("asked", [topic("orders", 4), topic("orders", 4, [1], [1])])
def test_partitions_are_added(asked: CreatePartitionsTopic) -> None:
    """New partitions follow the old ones, with their replication factor."""
    made = plan(asked)
    assert [(r.name, r.error_code, r.error_message) for r in made.results.results] == [("orders", 0, None)]
    assert made.records == [
        PartitionRecord(
            partition_id=partition_id,
            topic_id=b"orders..........",
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[DIRECTORY],
        )
        for partition_id in (2, 3)
    ]


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (topic("nope", 3), "UNKNOWN_TOPIC_OR_PARTITION", None),
        (topic("orders", 2), "INVALID_PARTITIONS", "Topic already has 2 partition(s)."),
        (
            topic("orders", 1),
            "INVALID_PARTITIONS",
            "The topic orders currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            topic("orders", -5),
            "INVALID_PARTITIONS",
            "The topic orders currently has 2 partition(s); -5 would not be an increase.",
        ),
        (
            topic("orders", 4, [1]),
            "INVALID_REPLICA_ASSIGNMENT",
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            topic("orders", 4, assigned=True),
            "INVALID_REPLICA_ASSIGNMENT",
            "Attempted to add 2 additional partition(s), but only 0 assignment(s) were specified.",
        ),
        (
            topic("orders", 3, [7]),
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (
            topic("orders", 3, [1, 1]),
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            topic("orders", 2**31 - 1),
            "POLICY_VIOLATION",
            "Excessively large number of partitions per request.",
        ),
    ],
)
def test_refused_as_kafka_refuses(asked: CreatePartitionsTopic, code: str, message: str | None) -> None:
    """The code, the message, and no record."""
    made = plan(asked)
    [result] = made.results.results
    assert (result.name, result.error_code, result.error_message) == (asked.name, ErrorCode[code], message)
    assert made.records == []


def test_name_given_twice_is_refused_once() -> None:
    """One answer, no partition."""
    made = plan(topic("orders", 3), topic("orders", 4))
    assert [(r.name, r.error_code, r.error_message) for r in made.results.results] == [
        ("orders", ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    ]
    assert made.records == []


def test_validate_only_writes_nothing() -> None:
    """The answer without the deed."""
    made = plan(topic("orders", 5), validate_only=True)
    assert [r.error_code for r in made.results.results] == [0]
    assert made.records == []
