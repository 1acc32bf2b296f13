"""The requests about the quorum of the metadata and about moving partitions, to clusters of one node."""

from typing import Any

import pytest

from compat_tests.conftest import NewTopic
from compat_tests.raw_client import RawClient, plain
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

METADATA = "__cluster_metadata"
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
BAD_ASSIGNMENT = ErrorCode.INVALID_REPLICA_ASSIGNMENT


def describe_quorum(raw: RawClient, version: int, *partitions: tuple[str, int]) -> dict[str, Any]:
    topics = [
        TopicData(topic_name=name, partitions=[PartitionData(partition_index=index)])
        for name, index in partitions
    ]
    answer: dict[str, Any] = plain(raw.send(DescribeQuorumRequest(topics=topics), version))
    return answer


@pytest.mark.parametrize("version", [0, 1, 2])
def test_quorum_of_one(raw: RawClient, version: int) -> None:
    """The node leads, is the only voter and has all that there is."""
    answer = describe_quorum(raw, version, (METADATA, 0))
    [topic] = answer["topics"]
    [partition] = topic["partitions"]
    assert (answer["error_code"], topic["topic_name"], partition["partition_index"]) == (0, METADATA, 0)
    assert (partition["error_code"], partition["leader_id"], partition["observers"]) == (0, 1, [])
    assert partition["leader_epoch"] >= 1
    [voter] = partition["current_voters"]
    assert (voter["replica_id"], voter["replica_directory_id"]) == (1, bytes(16))
    assert voter["log_end_offset"] >= partition["high_watermark"] > 0
    assert (voter["last_fetch_timestamp"] > 1_700_000_000_000) == (version >= 1)
    assert voter["last_fetch_timestamp"] == voter["last_caught_up_timestamp"]
    assert [node["node_id"] for node in answer["nodes"]] == ([1] if version == 2 else [])


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("partitions", [[("other", 0)], [(METADATA, 1)], [(METADATA, 0), ("other", 0)], []])
def test_quorum_of_what_has_none(raw: RawClient, version: int, partitions: list[tuple[str, int]]) -> None:
    """Only the partition of the metadata has a quorum, and it must be asked for alone."""
    answer = describe_quorum(raw, version, *partitions)
    assert [
        (topic["topic_name"], topic["partitions"][0]["partition_index"]) for topic in answer["topics"]
    ] == (partitions)
    for topic in answer["topics"]:
        [partition] = topic["partitions"]
        assert (partition["error_code"], partition["leader_id"]) == (UNKNOWN, 0)
        assert partition["current_voters"] == []


def test_nothing_is_moving(raw: RawClient, new_topic: NewTopic) -> None:
    """Neither of all partitions, nor of those that are asked for, be they there or not."""
    topic = new_topic(partitions=2)
    named = [
        ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
        for name, indexes in ((topic, [0, 1, 9]), ("no-such-topic", [0]))
    ]
    for topics in (None, [], named):
        answer = plain(raw.send(ListPartitionReassignmentsRequest(topics=topics), 0))
        assert answer == {"throttle_time_ms": 0, "error_code": 0, "error_message": None, "topics": []}


@pytest.mark.parametrize("version", [0, 1])
def test_partitions_stay(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    """Told to stay they do; other brokers, the same one twice and none are refused, and no move can be given up."""
    topic = new_topic()
    asked: list[tuple[int, list[int] | None, ErrorCode]] = [
        (0, [1], ErrorCode.NONE),
        (0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (0, [], BAD_ASSIGNMENT),
        (0, [2], BAD_ASSIGNMENT),
        (0, [1, 1], BAD_ASSIGNMENT),
        (0, [1, 2], BAD_ASSIGNMENT),
        (9, [1], UNKNOWN),
    ]
    partitions = [
        ReassignablePartition(partition_index=index, replicas=replicas) for index, replicas, _ in asked
    ]
    topics = [
        ReassignableTopic(name=topic, partitions=partitions),
        ReassignableTopic(name="no-such-topic", partitions=partitions[:1]),
    ]
    request = AlterPartitionReassignmentsRequest(topics=topics, allow_replication_factor_change=version == 0)
    answer = plain(raw.send(request, version))
    assert (answer["error_code"], answer["error_message"]) == (0, None)
    assert answer["allow_replication_factor_change"] == (version == 0)
    known, unknown = answer["responses"]
    assert [(each["partition_index"], each["error_code"]) for each in known["partitions"]] == [
        (index, error) for index, _, error in asked
    ]
    assert [each["error_message"] is None for each in known["partitions"]] == [True, True, *[False] * 5]
    assert [each["error_code"] for each in unknown["partitions"]] == [UNKNOWN]
