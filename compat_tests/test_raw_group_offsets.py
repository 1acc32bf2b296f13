"""Committed offsets and the admin of groups in every version, and every refusal."""

from typing import Any

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import (
    RawMember,
    commit_request,
    fetch_offset,
    subscription,
    wait_for_coordinator,
)
from compat_tests.raw_topics import create_topic
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

COMMIT_VERSIONS = range(OffsetCommitRequest.MIN_VERSION, OffsetCommitRequest.MAX_VERSION + 1)
FETCH_VERSIONS = range(OffsetFetchRequest.MIN_VERSION, OffsetFetchRequest.MAX_VERSION + 1)
NO_TOPIC = b"\x01" * 16


@pytest.fixture
def topic(raw: RawClient, topic_name: str) -> tuple[str, bytes]:
    """A topic of three partitions: its name, which is also the group's, and its id."""
    wait_for_coordinator(raw, topic_name)
    return topic_name, create_topic(raw, topic_name, 3)


def errors(answer: Any) -> dict[int, str]:
    """The errors of the only topic's partitions."""
    (topic,) = answer.topics
    return {each.partition_index: ErrorCode(each.error_code).name for each in topic.partitions}


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_commit(raw: RawClient, topic: tuple[str, bytes], version: int) -> None:
    """Offset, epoch and metadata come back; partitions that do not exist are refused one by one."""
    name, topic_id = topic
    partitions = [
        OffsetCommitRequestPartition(0, 5, 2 if version >= 6 else -1, "note"),
        OffsetCommitRequestPartition(1, 6, -1, None),
        OffsetCommitRequestPartition(2, 7, -1, "x" * 4097),
        OffsetCommitRequestPartition(3, 8),
    ]
    by_id = version >= 10
    asked = OffsetCommitRequestTopic("" if by_id else name, topic_id if by_id else bytes(16), partitions)
    answer = raw.send(OffsetCommitRequest(name, topics=[asked]), version)
    assert (answer.topics[0].name, answer.topics[0].topic_id) == (asked.name, asked.topic_id)
    assert errors(answer) == {
        0: "NONE",
        1: "NONE",
        2: "OFFSET_METADATA_TOO_LARGE",
        3: "UNKNOWN_TOPIC_OR_PARTITION",
    }
    found = [fetch_offset(raw, name, name, index) for index in range(3)]
    assert [(each.committed_offset, each.committed_leader_epoch, each.metadata) for each in found] == [
        (5, 2 if version >= 6 else -1, "note"),
        (6, -1, ""),
        (-1, -1, ""),
    ]


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_commit_to_no_topic(raw: RawClient, topic: tuple[str, bytes], version: int) -> None:
    """By name and by id."""
    partition = OffsetCommitRequestPartition(0, 5)
    asked = OffsetCommitRequestTopic("no-such-topic", partitions=[partition])
    if version >= 10:
        asked = OffsetCommitRequestTopic("", NO_TOPIC, [partition])
    expected = "UNKNOWN_TOPIC_ID" if version >= 10 else "UNKNOWN_TOPIC_OR_PARTITION"
    assert errors(raw.send(OffsetCommitRequest(topic[0], topics=[asked]), version)) == {0: expected}


@pytest.mark.parametrize("version", [2, 8, 9])
@pytest.mark.parametrize("generation_id", [-1, 0, 5])
def test_commit_of_a_stranger(
    raw: RawClient, topic: tuple[str, bytes], version: int, generation_id: int
) -> None:
    """Who names a member of a group that is not there, or of one that is empty."""
    request = commit_request(topic[0], topic[0], 0, 5)
    request.member_id, request.generation_id_or_member_epoch = "stranger", generation_id
    missing = "GROUP_ID_NOT_FOUND" if version >= 9 else "ILLEGAL_GENERATION"
    expected = "NONE" if generation_id < 0 else missing
    assert errors(raw.send(request, version)) == {0: expected}
    raw.send(commit_request(topic[0], topic[0], 0, 5), version)
    expected = "NONE" if generation_id < 0 else "UNKNOWN_MEMBER_ID"
    assert errors(raw.send(request, version)) == {0: expected}


def test_commit_of_members(bootstrap: str, raw: RawClient, topic: tuple[str, bytes]) -> None:
    """During the rebalance, in the generation, and by others while there are members."""
    member = RawMember(bootstrap, topic[0])
    member.join()
    assert member.commit(topic[0], 0, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    member.sync({})
    assert member.commit(topic[0], 0, 1) == ErrorCode.NONE
    assert errors(raw.send(commit_request(topic[0], topic[0], 0, 5), 9)) == {0: "UNKNOWN_MEMBER_ID"}
    member.generation_id = 2
    assert member.commit(topic[0], 0, 1) == ErrorCode.ILLEGAL_GENERATION
    member.close()


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch(raw: RawClient, topic: tuple[str, bytes], version: int) -> None:
    """Committed, never committed and not existing partitions."""
    name, topic_id = topic
    raw.send(commit_request(name, name, 0, 5, "note", 3), 9)
    if version < 8:
        request = OffsetFetchRequest(group_id=name, topics=[OffsetFetchRequestTopic(name, [0, 1, 9])])
        answer = raw.send(request, version)
        assert answer.error_code == ErrorCode.NONE
        (found,) = answer.topics
    else:
        asked = OffsetFetchRequestTopics("" if version >= 10 else name, topic_id, [0, 1, 9])
        if version < 10:
            asked.topic_id = bytes(16)
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(name, topics=[asked])])
        (group,) = raw.send(request, version).groups
        assert (group.group_id, group.error_code) == (name, ErrorCode.NONE)
        (found,) = group.topics
        assert found.topic_id == asked.topic_id
    epoch = 3 if version >= 5 else -1
    assert [
        (
            each.partition_index,
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
            each.error_code,
        )
        for each in found.partitions
    ] == [(0, 5, epoch, "note", 0), (1, -1, -1, "", 0), (9, -1, -1, "", 0)]


@pytest.mark.parametrize("version", range(2, 11))
def test_fetch_everything(raw: RawClient, topic: tuple[str, bytes], version: int) -> None:
    """Null topics: every topic of the group, and none of a group that is not there."""
    name, topic_id = topic
    raw.send(commit_request(name, name, 1, 5), 9)
    wait_for_coordinator(raw, "nothing-here")
    if version < 8:
        answers = [
            raw.send(OffsetFetchRequest(group_id=group, topics=None), version)
            for group in (name, "nothing-here")
        ]
    else:
        groups = [OffsetFetchRequestGroup(group, topics=None) for group in (name, "nothing-here")]
        answers = raw.send(OffsetFetchRequest(groups=groups), version).groups
    found, nothing = answers
    assert [answer.error_code for answer in answers] == [0, 0]
    assert nothing.topics == []
    (one,) = found.topics
    if version >= 10:
        assert one.topic_id == topic_id
    else:
        assert one.name == name
    assert [(each.partition_index, each.committed_offset) for each in one.partitions] == [(1, 5)]


def test_fetch_by_an_unknown_id(raw: RawClient, topic: tuple[str, bytes]) -> None:
    """UNKNOWN_TOPIC_ID for each partition."""
    asked = OffsetFetchRequestTopics("", NO_TOPIC, [0, 1])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(topic[0], topics=[asked])])
    (group,) = raw.send(request, 10).groups
    (found,) = group.topics
    assert found.topic_id == NO_TOPIC
    assert [
        (each.committed_offset, each.committed_leader_epoch, each.metadata) for each in found.partitions
    ] == [(-1, -1, "")] * 2
    assert {each.error_code for each in found.partitions} == {ErrorCode.UNKNOWN_TOPIC_ID}


def test_offsets_of_a_deleted_topic(raw: RawClient, topic: tuple[str, bytes]) -> None:
    """They go with it; one of the same name begins without."""
    name, _ = topic
    raw.send(commit_request(name, name, 0, 5), 9)
    raw.send(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000), 6)
    eventually(lambda: fetch_offset(raw, name, name, 0).committed_offset, -1)


def test_delete_offsets(bootstrap: str, raw: RawClient, topic: tuple[str, bytes]) -> None:
    """Of topics without subscribers only; partitions that do not exist are refused one by one."""
    name, _ = topic
    partitions = [OffsetDeleteRequestPartition(index) for index in (0, 1, 7)]
    request = OffsetDeleteRequest(name, [OffsetDeleteRequestTopic(name, partitions)])
    assert ErrorCode(raw.send(request, 0).error_code) is ErrorCode.GROUP_ID_NOT_FOUND
    raw.send(commit_request(name, name, 0, 5), 9)
    answer = raw.send(request, 0)
    assert answer.error_code == ErrorCode.NONE
    assert errors(answer) == {0: "NONE", 1: "NONE", 7: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert fetch_offset(raw, name, name, 0).committed_offset == -1
    member = RawMember(bootstrap, name, protocols={"range": subscription(name)})
    member.join()
    member.sync({})
    assert errors(raw.send(request, 0)) == {
        0: "GROUP_SUBSCRIBED_TO_TOPIC",
        1: "GROUP_SUBSCRIBED_TO_TOPIC",
        7: "UNKNOWN_TOPIC_OR_PARTITION",
    }
    member.leave()
    assert errors(raw.send(request, 0))[0] == "NONE"
    connect = RawMember(bootstrap, name, protocol_type="connect")
    connect.join()
    assert ErrorCode(raw.send(request, 0).error_code) is ErrorCode.NON_EMPTY_GROUP
    connect.close()
    member.close()
    assert ErrorCode(raw.send(OffsetDeleteRequest(""), 0).error_code) is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(3))
def test_delete_groups(bootstrap: str, raw: RawClient, topic: tuple[str, bytes], version: int) -> None:
    """Not while it has members, and then with its offsets."""
    name, _ = topic
    member = RawMember(bootstrap, name)
    member.join()
    member.sync({})
    member.commit(name, 0, 5)
    request = DeleteGroupsRequest([name, "never-was", name])
    wait_for_coordinator(raw, "never-was")

    def results() -> dict[str, str]:
        answer = raw.send(request, version)
        assert len(answer.results) == 2
        return {each.group_id: ErrorCode(each.error_code).name for each in answer.results}

    assert results() == {name: "NON_EMPTY_GROUP", "never-was": "GROUP_ID_NOT_FOUND"}
    member.leave()
    assert results()[name] == "NONE"
    assert results()[name] == "GROUP_ID_NOT_FOUND"
    assert fetch_offset(raw, name, name, 0).committed_offset == -1
    member.close()


@pytest.mark.parametrize("version", range(6))
def test_list_groups(bootstrap: str, raw: RawClient, topic: tuple[str, bytes], version: int) -> None:
    """State and type where the version has them; filters in any case of letters."""
    name, _ = topic
    member = RawMember(bootstrap, name)
    member.join()
    raw.send(commit_request(f"{name}-simple", name, 0, 5), 9)

    def listed(**filters: list[str]) -> dict[str, tuple[str, str, str]]:
        answer = raw.send(ListGroupsRequest(**filters), version)
        assert answer.error_code == ErrorCode.NONE
        return {
            each.group_id: (each.protocol_type, each.group_state, each.group_type)
            for each in answer.groups
            if each.group_id.startswith(name)
        }

    wait_for_coordinator(raw, f"{name}-simple")
    raw.send(commit_request(f"{name}-simple", name, 0, 5), 9)
    classic = "classic" if version >= 5 else ""
    one = ("consumer", "CompletingRebalance" if version >= 4 else "", classic)
    simple = ("", "Empty" if version >= 4 else "", classic)
    assert listed() == {name: one, f"{name}-simple": simple}
    if version >= 4:
        assert listed(states_filter=["emPTY", "Stable"]) == {f"{name}-simple": simple}
        assert listed(states_filter=["NoSuchState"]) == {}
    if version >= 5:
        assert listed(types_filter=["cLASSic"]) == {name: one, f"{name}-simple": simple}
        assert listed(types_filter=["consumer"], states_filter=["Empty"]) == {}
        assert listed(types_filter=["nonsense"]) == {}
    member.close()
