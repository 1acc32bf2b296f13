"""ConsumerGroupHeartbeat requests that are refused: code and words as Apache Kafka 4.3.0 gave them."""

from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.group_coordinator.driver import Driver

FULL: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "rebalance_timeout_ms": 30_000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
INVALID = ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({"member_id": ""}, INVALID, "MemberId can't be empty."),
        ({"group_id": ""}, INVALID, "GroupId can't be empty."),
        ({"group_id": " "}, INVALID, "GroupId can't be empty."),
        ({"instance_id": ""}, INVALID, "InstanceId can't be empty."),
        ({"rack_id": ""}, INVALID, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, INVALID, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, INVALID, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topic_partitions": [TopicPartitions(b"t" * 16, [0])]},
            INVALID,
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {"subscribed_topic_names": None},
            INVALID,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, INVALID, "InstanceId can't be null."),
        ({"member_epoch": -3}, INVALID, "MemberEpoch is invalid."),
        (
            {"server_assignor": "nope"},
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            "ServerAssignor nope is not supported. Supported assignors: uniform, range.",
        ),
        (
            {"subscribed_topic_names": ["x" * 200] * 6000},
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "The subscription is larger than a record may be.",
        ),
        ({"member_epoch": 5}, ErrorCode.GROUP_ID_NOT_FOUND, "Consumer group g not found."),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found."),
    ],
)
def test_without_a_group(changed: dict[str, Any], code: ErrorCode, words: str) -> None:
    """Nothing is written for a request that is refused."""
    driver = Driver()
    answer = driver.ask(ConsumerGroupHeartbeatRequest(**{**FULL, **changed}))
    assert (answer.error_code, answer.error_message, answer.member_id) == (code, words, None)
    assert not driver.log


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        (
            {"member_id": "x", "member_epoch": 2},
            ErrorCode.UNKNOWN_MEMBER_ID,
            "Member x is not a member of group g.",
        ),
        (
            {"member_id": "x", "member_epoch": -1},
            ErrorCode.UNKNOWN_MEMBER_ID,
            "Member x is not a member of group g.",
        ),
        ({"instance_id": "j", "member_epoch": 2}, ErrorCode.UNKNOWN_MEMBER_ID, "Instance id j is unknown."),
        ({"instance_id": "j", "member_epoch": -2}, ErrorCode.UNKNOWN_MEMBER_ID, "Instance id j is unknown."),
        (
            {"member_id": "x", "instance_id": "i"},
            ErrorCode.UNRELEASED_INSTANCE_ID,
            "Static member x with instance id i cannot join the group because the instance id is owned by m member.",
        ),
        (
            {"member_id": "x", "instance_id": "i", "member_epoch": 2},
            ErrorCode.FENCED_INSTANCE_ID,
            "Static member x with instance id i was fenced by member m.",
        ),
        (
            {"instance_id": "i", "member_epoch": 9},
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member has a greater member epoch (9) than the one known by the group coordinator "
            "(2). The member must abandon all its partitions and rejoin.",
        ),
    ],
)
def test_with_a_static_member(changed: dict[str, Any], code: ErrorCode, words: str) -> None:
    """The member is m with the instance id i in epoch 2."""
    driver = Driver()
    driver.ask(ConsumerGroupHeartbeatRequest(**FULL, instance_id="i"))
    written = len(driver.log)
    answer = driver.ask(ConsumerGroupHeartbeatRequest(**{**FULL, **changed}))
    assert (answer.error_code, answer.error_message) == (code, words)
    assert len(driver.log) == written
