"""Consumer groups (KIP-848) request by request: the same answers from both brokers."""

import uuid
from typing import Any

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_consumer_groups import RawConsumer, describe
from compat_tests.raw_groups import RawMember, fetch_offset, subscription, wait_for_coordinator
from compat_tests.raw_topics import create_topic
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

GROUP_RESOURCE = 32


@pytest.fixture
def group(raw: RawClient) -> str:
    """The name of a group that is coordinated."""
    name = f"group-{uuid.uuid4().hex[:8]}"
    wait_for_coordinator(raw, name)
    return name


@pytest.fixture
def topic(raw: RawClient, topic_name: str) -> tuple[str, bytes]:
    """A topic of four partitions: name and id."""
    return topic_name, create_topic(raw, topic_name, 4)


def configure(raw: RawClient, group: str, **configs: str) -> None:
    """Set configs of a group; underscores stand for dots."""
    changes = [
        AlterableConfig(name=f"consumer.{name.replace('_', '.')}", config_operation=0, value=value)
        for name, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=changes)
    (answer,) = raw.send(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answer.error_code == ErrorCode.NONE, answer.error_message


def assign_at_once(raw: RawClient, group: str) -> None:
    """Let targets of this group be computed without a pause between them."""
    configure(raw, group, assignment_interval_ms="0")


def beat_until(member: RawConsumer, owned: dict[bytes, list[int]]) -> None:
    """Heartbeats until the member owns this."""

    def owned_after_a_heartbeat() -> dict[bytes, list[int]]:
        member.beat()
        return member.owned

    eventually(owned_after_a_heartbeat, owned)


FULL: dict[str, Any] = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({**FULL, "member_id": ""}, 42, "MemberId can't be empty."),
        ({**FULL, "group_id": ""}, 42, "GroupId can't be empty."),
        ({**FULL, "group_id": " "}, 42, "GroupId can't be empty."),
        ({**FULL, "instance_id": ""}, 42, "InstanceId can't be empty."),
        ({**FULL, "rack_id": " "}, 42, "RackId can't be empty."),
        ({**FULL, "rebalance_timeout_ms": -1}, 42, "RebalanceTimeoutMs must be provided in first request."),
        ({**FULL, "topic_partitions": None}, 42, "TopicPartitions must be empty when (re-)joining."),
        (
            {**FULL, "topic_partitions": [TopicPartitions(b"i" * 16, [0])]},
            42,
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {**FULL, "subscribed_topic_names": None},
            42,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, 42, "InstanceId can't be null."),
        ({"member_epoch": -3}, 42, "MemberEpoch is invalid."),
        (
            {**FULL, "server_assignor": "nope"},
            112,
            "ServerAssignor nope is not supported. Supported assignors: uniform, range.",
        ),
        ({"member_epoch": 5}, 69, "Consumer group GROUP not found."),
        ({"member_epoch": -1}, 69, "Group GROUP not found."),
        (
            {**FULL, "subscribed_topic_regex": "("},
            128,
            "SubscribedTopicRegex `(` is not a valid regular expression: missing closing ).",
        ),
    ],
)
def test_refused_heartbeats(
    raw: RawClient, group: str, fields: dict[str, Any], code: int, words: str
) -> None:
    """Code and words, and no group comes of it."""
    request = ConsumerGroupHeartbeatRequest(**{"group_id": group, "member_id": "m", **fields})
    answer = raw.send(request, 1)
    assert (answer.error_code, answer.error_message) == (code, words.replace("GROUP", group))
    assert describe(raw, group).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_hand_over(raw: RawClient, group: str, topic: tuple[str, bytes]) -> None:
    """A second member waits until the first gave up what it loses; a third one makes both give a little."""
    name, topic_id = topic
    assign_at_once(raw, group)
    first, second = RawConsumer(raw, group, "a", name), RawConsumer(raw, group, "b", name)
    eventually(lambda: first.join().member_epoch, 2)
    assert first.owned == {topic_id: [0, 1, 2, 3]}
    assert second.join().member_epoch == 3
    assert second.owned == {}
    assert describe(raw, group).group_state == "Reconciling"
    assert first.beat().member_epoch == 2
    assert len(first.owned[topic_id]) == 2
    assert second.beat().assignment is None
    assert first.beat().member_epoch == 3
    second.beat()
    assert sorted(first.owned[topic_id] + second.owned[topic_id]) == [0, 1, 2, 3]
    described = describe(raw, group)
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 3, 3)
    assert described.assignor_name == "uniform"
    members = {member.member_id: member for member in described.members}
    assert members["a"].client_id == "raw-client"
    assert members["a"].client_host == "/127.0.0.1"
    assert members["a"].subscribed_topic_names == [name]
    assert members["a"].member_type == 1
    assert [
        (each.topic_name, sorted(each.partitions)) for each in members["a"].assignment.topic_partitions
    ] == [(name, first.owned[topic_id])]
    assert first.beat(member_epoch=9).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert first.leave().member_epoch == -1
    second.beat()
    assert second.owned == {topic_id: [0, 1, 2, 3]}
    assert second.epoch == 4


def test_static_members(raw: RawClient, group: str, topic: tuple[str, bytes]) -> None:
    """Away and back under another id, with the same partitions and no new epoch."""
    name, topic_id = topic
    first = RawConsumer(raw, group, "a", name, instance_id="i")
    eventually(lambda: first.join().member_epoch, 2)
    second = RawConsumer(raw, group, "b", name, instance_id="i")
    assert second.join().error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert first.leave(-2).member_epoch == -2
    assert second.join().member_epoch == 2
    assert second.owned == {topic_id: [0, 1, 2, 3]}
    assert first.beat().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert [member.member_id for member in describe(raw, group).members] == ["b"]


def test_partitions_that_are_added(raw: RawClient, group: str, topic: tuple[str, bytes]) -> None:
    """A later heartbeat brings them."""
    name, topic_id = topic
    assign_at_once(raw, group)
    member = RawConsumer(raw, group, "a", name, assignor="range")
    eventually(lambda: member.join().member_epoch, 2)
    grown = CreatePartitionsTopic(name=name, count=6, assignments=None)
    raw.send(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000), 3)
    beat_until(member, {topic_id: [0, 1, 2, 3, 4, 5]})
    assert (member.epoch, describe(raw, group).assignor_name) == (3, "range")


def test_topics_that_come_and_go(raw: RawClient, group: str, topic: tuple[str, bytes]) -> None:
    """One that is subscribed to before it exists, that is deleted, and that is made again under its name."""
    name, topic_id = topic
    assign_at_once(raw, group)
    member = RawConsumer(raw, group, "a", name, f"{name}-later", assignor="range")
    eventually(lambda: member.join().member_epoch, 2)
    assert member.owned == {topic_id: [0, 1, 2, 3]}
    later_id = create_topic(raw, f"{name}-later", 2)
    beat_until(member, {topic_id: [0, 1, 2, 3], later_id: [0, 1]})
    raw.send(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000), 6)
    beat_until(member, {later_id: [0, 1]})
    again_id = create_topic(raw, name, 1)
    assert again_id != topic_id
    beat_until(member, {again_id: [0], later_id: [0, 1]})
    member.beat()
    assert describe(raw, group).group_state == "Stable"


def test_configs_of_a_group(raw: RawClient, group: str, topic: tuple[str, bytes]) -> None:
    """They are in effect with the next heartbeat."""
    configure(raw, group, heartbeat_interval_ms="6000")
    member = RawConsumer(raw, group, "a", topic[0])
    eventually(lambda: member.join().heartbeat_interval_ms, 6000)
    configure(raw, group, heartbeat_interval_ms="7000")
    eventually(lambda: member.beat().heartbeat_interval_ms, 7000)


def test_members_that_do_not_give_up_in_time(raw: RawClient, group: str, topic: tuple[str, bytes]) -> None:
    """They are removed when their rebalance timeout is over; a static one that is away has its session instead."""
    name, _ = topic
    assign_at_once(raw, group)
    away = RawConsumer(raw, group, "a", name, instance_id="i")
    silent = RawConsumer(raw, group, "b", name)
    eventually(lambda: away.join(rebalance_timeout_ms=100).member_epoch, 2)
    silent.join(rebalance_timeout_ms=500)
    for _ in range(2):
        away.beat()
        silent.beat()
    assert describe(raw, group).group_state == "Stable"
    for newcomer in "cd":
        RawConsumer(raw, group, newcomer, name).join()
    away.beat()
    assert away.leave(-2).error_code == ErrorCode.NONE
    silent.beat()

    def members() -> set[str]:
        return {each.member_id for each in describe(raw, group).members}

    assert members() == {"a", "b", "c", "d"}
    eventually(members, {"a", "c", "d"})
    assert silent.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_regular_expressions(raw: RawClient, group: str, topic: tuple[str, bytes]) -> None:
    """Whole names are matched; Kafka resolves behind its answer, so the assignment may take another heartbeat."""
    name, topic_id = topic
    assign_at_once(raw, group)
    member = RawConsumer(raw, group, "a", regex=name[:-1] + ".")
    member.join()
    beat_until(member, {topic_id: [0, 1, 2, 3]})
    (described,) = describe(raw, group).members
    assert (described.subscribed_topic_names, described.subscribed_topic_regex) == ([], name[:-1] + ".")


def commit(raw: RawClient, group: str, topic: str, epoch: int, version: int = 9, partition: int = 0) -> int:
    """The error of a commit of member a."""
    partitions = [OffsetCommitRequestPartition(partition_index=partition, committed_offset=7)]
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id="a",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)],
    )
    (answered,) = raw.send(request, version).topics
    return int(answered.partitions[0].error_code)


def test_commits(raw: RawClient, group: str, topic: tuple[str, bytes]) -> None:
    """In the member's epoch; an older one is good for what it has had since; older versions know no epochs."""
    name, _ = topic
    assign_at_once(raw, group)
    first, second = RawConsumer(raw, group, "a", name), RawConsumer(raw, group, "b", name)
    eventually(lambda: first.join().member_epoch, 2)
    assert commit(raw, group, name, 2) == ErrorCode.NONE
    assert commit(raw, group, name, 3) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(raw, group, name, 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(raw, group, name, 2, version=8) == ErrorCode.UNSUPPORTED_VERSION
    second.join()
    first.beat()
    assert first.beat().member_epoch == 3
    (kept, *_), (lost, *_) = first.owned.values(), [{0, 1, 2, 3}]
    assert commit(raw, group, name, 2, partition=kept[0]) == ErrorCode.NONE
    given_up = min(lost - set(kept))
    assert commit(raw, group, name, 2, partition=given_up) == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch_offset(raw, group, name, kept[0]).committed_offset == 7


def test_describe_and_list(raw: RawClient, group: str, topic: tuple[str, bytes]) -> None:
    """Groups that are not there, that are of the other kind, that are empty."""
    name, _ = topic
    member = RawConsumer(raw, group, "a", name)
    eventually(lambda: member.join().member_epoch, 2)
    answer = raw.send(
        ConsumerGroupDescribeRequest(group_ids=["", group], include_authorized_operations=True), 1
    )
    found = {each.group_id: each for each in answer.groups}
    assert found[""].error_code == ErrorCode.INVALID_GROUP_ID
    assert (found[group].error_code, found[group].authorized_operations) == (0, 3400)
    listed = {
        each.group_id: each for each in raw.send(ListGroupsRequest(types_filter=["consumer"]), 5).groups
    }
    assert (listed[group].protocol_type, listed[group].group_state, listed[group].group_type) == (
        "consumer",
        "Stable",
        "consumer",
    )
    member.leave()
    assert describe(raw, group).group_state == "Empty"
    assert describe(raw, group + "-none").error_message == f"Group {group}-none not found."


def test_migration(raw: RawClient, bootstrap: str, group: str, topic: tuple[str, bytes]) -> None:
    """A classic group takes in a consumer member, and is a classic group again when that has left."""
    name, _ = topic
    assign_at_once(raw, group)
    old = RawMember(bootstrap, group, protocols={"range": subscription(name)})
    old.join()
    old.sync({})
    new = RawConsumer(raw, group, "new", name)
    assert new.join().error_code == ErrorCode.NONE
    assert describe(raw, group).error_code == ErrorCode.NONE
    types = {member.member_id: member.member_type for member in describe(raw, group).members}
    assert types == {old.member_id: 0, "new": 1}
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    joined = old.join()
    assert (joined.error_code, joined.leader, joined.members) == (ErrorCode.NONE, "", [])
    assert old.sync().error_code == ErrorCode.NONE
    assert old.heartbeat() == ErrorCode.NONE
    new.leave()
    assert describe(raw, group).error_message == f"Group {group} is not a consumer group."
    eventually(old.heartbeat, ErrorCode.REBALANCE_IN_PROGRESS)
    assert old.join().leader == old.member_id
    old.close()
