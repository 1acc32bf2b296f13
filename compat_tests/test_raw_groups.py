"""The classic group protocol in every version: joining, syncing, staying, leaving, and every refusal."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.raw_client import RawClient, plain
from compat_tests.raw_groups import RawMember, subscription, wait_for_coordinator
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest

NewMember = Callable[..., RawMember]


@pytest.fixture
def group_id(topic_name: str, raw: RawClient) -> str:
    """A group of its own for every test, with a coordinator that is ready."""
    wait_for_coordinator(raw, topic_name)
    return topic_name


@pytest.fixture
def new_member(bootstrap: str, group_id: str) -> Iterator[NewMember]:
    """Makes members of the test's group."""
    members: list[RawMember] = []

    def make(**settings: Any) -> RawMember:
        members.append(RawMember(bootstrap, group_id, **settings))
        return members[-1]

    yield make
    for member in members:
        member.close()


def error(answer: Any) -> str:
    return ErrorCode(answer.error_code).name


def refusal(code: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    """An answer to JoinGroup that has nothing but an error and the id."""
    protocol_name = None if version >= 7 else ""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=protocol_name)


@pytest.mark.parametrize("version", range(10))
def test_life_of_a_member(new_member: NewMember, version: int) -> None:
    """Join, sync, stay and leave with the versions of one time."""
    member = new_member(protocols={"b": b"1", "a": b"2"})
    joined = member.join(version)
    assert error(joined) == "NONE"
    assert joined.member_id.startswith("raw-client-")
    assert len(joined.member_id) == len("raw-client-") + 36
    assert plain(joined) == plain(
        JoinGroupResponse(
            generation_id=1,
            protocol_type="consumer" if version >= 7 else None,
            protocol_name="b",
            leader=joined.member_id,
            member_id=joined.member_id,
            members=joined.members,
        )
    )
    assert [(each.member_id, each.metadata) for each in joined.members] == [(joined.member_id, b"1")]
    sync_version = min(version, 5)
    synced = member.sync({member.member_id: b"part"}, sync_version)
    assert (error(synced), synced.assignment) == ("NONE", b"part")
    assert synced.protocol_name == ("b" if sync_version >= 5 else None)
    assert member.heartbeat(min(version, 4)) == ErrorCode.NONE
    left = member.leave(min(version, 5))
    assert error(left) == "NONE"
    assert [each.error_code for each in left.members] == ([0] if version >= 3 else [])
    assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_id_comes_first(new_member: NewMember) -> None:
    """What a new member is told, in full."""
    member = new_member()
    for version in range(4, 10):
        answer = member.raw.send(member.join_request(version), version)
        assert plain(answer) == plain(refusal(ErrorCode.MEMBER_ID_REQUIRED, answer.member_id, version))


@pytest.mark.parametrize("version", [0, 3, 6, 7, 9])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"group_id": ""}, "INVALID_GROUP_ID"),
        ({"session_timeout_ms": 5999}, "INVALID_SESSION_TIMEOUT"),
        ({"session_timeout_ms": 1_800_001}, "INVALID_SESSION_TIMEOUT"),
        ({"protocols": []}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"protocol_type": ""}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"member_id": "nobody"}, "UNKNOWN_MEMBER_ID"),
    ],
)
def test_join_refused(new_member: NewMember, version: int, change: dict[str, Any], expected: str) -> None:
    """What cannot be joined, and the rest of the answer."""
    request = new_member().join_request(version)
    for name, value in change.items():
        setattr(request, name, value)
    with RawClient.to(new_member().bootstrap) as raw:
        answer = raw.send(request, version)
    assert plain(answer) == plain(refusal(ErrorCode[expected], request.member_id, version))


def test_refused_by_a_group_of_others(new_member: NewMember) -> None:
    """Another protocol type, or nothing in common with those who are there."""
    member = new_member()
    member.join()
    member.sync({})
    for stranger in (new_member(protocol_type="connect"), new_member(protocols={"sticky": b""})):
        assert error(stranger.join()) == "INCONSISTENT_GROUP_PROTOCOL"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"member_id": "x"}, "UNKNOWN_MEMBER_ID"),
        ({"group_id": ""}, "INVALID_GROUP_ID"),
        ({"group_id": "no-such-group"}, "UNKNOWN_MEMBER_ID"),
        ({"generation_id": 7}, "ILLEGAL_GENERATION"),
        ({"group_instance_id": "i"}, "UNKNOWN_MEMBER_ID"),
        ({"protocol_type": "connect"}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"protocol_name": "sticky"}, "INCONSISTENT_GROUP_PROTOCOL"),
    ],
)
def test_sync_refused(new_member: NewMember, raw: RawClient, change: dict[str, Any], expected: str) -> None:
    """What cannot be synced; heartbeats are refused alike."""
    if change.get("group_id"):
        wait_for_coordinator(raw, change["group_id"])
    member = new_member()
    member.join()
    request = member.sync_request()
    for name, value in change.items():
        setattr(request, name, value)
    assert error(raw.send(request, 5)) == expected
    if not {"protocol_type", "protocol_name"} & change.keys():
        heartbeat = HeartbeatRequest(
            request.group_id, request.generation_id, request.member_id, request.group_instance_id
        )
        assert error(raw.send(heartbeat, 4)) == expected


def test_two_members(new_member: NewMember) -> None:
    """The second makes the first join again; the leader assigns to both, and each gets its own."""
    first, second = new_member(), new_member()
    first.join()
    first.sync({first.member_id: b"all"})
    second.member_id = second.raw.send(second.join_request(), 9).member_id
    second.raw.send_without_answer(second.join_request(), 9)
    while first.heartbeat() == ErrorCode.NONE:
        pass
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert error(first.sync()) == "REBALANCE_IN_PROGRESS"
    led = first.join()
    followed = second.raw.receive(JoinGroupRequest, 9)
    assert (led.generation_id, followed.generation_id) == (2, 2)
    assert led.leader == followed.leader == first.member_id
    assert {each.member_id for each in led.members} == {first.member_id, second.member_id}
    assert followed.members == []
    second.generation_id = 2
    second.raw.send_without_answer(second.sync_request(), 5)
    assert first.sync({first.member_id: b"one", second.member_id: b"two"}).assignment == b"one"
    assert second.raw.receive(SyncGroupRequest, 5).assignment == b"two"


def test_leaving(new_member: NewMember, raw: RawClient, group_id: str) -> None:
    """Members, instances and strangers in one request."""
    member, static = new_member(), new_member(instance_id="i")
    static.join()
    static.sync({})
    request = LeaveGroupRequest(
        group_id,
        members=[MemberIdentity("", "i"), MemberIdentity("", "j"), MemberIdentity("x"), MemberIdentity("")],
    )
    answer = raw.send(request, 5)
    assert error(answer) == "NONE"
    assert [(each.member_id, each.group_instance_id, error(each)) for each in answer.members] == [
        ("", "i", "NONE"),
        ("", "j", "UNKNOWN_MEMBER_ID"),
        ("x", None, "UNKNOWN_MEMBER_ID"),
        ("", None, "UNKNOWN_MEMBER_ID"),
    ]
    member.member_id = "x"
    assert error(member.leave(2)) == "UNKNOWN_MEMBER_ID"
    request.group_id = ""
    assert error(raw.send(request, 5)) == "INVALID_GROUP_ID"


class TestStaticMembers:
    """Members with a group instance id."""

    @pytest.mark.parametrize("version", [8, 9])
    def test_restart(self, new_member: NewMember, version: int) -> None:
        """The instance gets its assignment back; whether it leads it is told only if it can skip the assignment."""
        old = new_member(instance_id="i")
        first = old.join()
        old.sync({old.member_id: b"kept"})
        new = new_member(instance_id="i")
        again = new.join(version)
        assert (error(again), again.generation_id) == ("NONE", 1)
        assert again.member_id != first.member_id
        assert again.member_id.startswith("i-")
        assert again.skip_assignment == (version == 9)
        assert again.leader == (new.member_id if version == 9 else old.member_id)
        assert len(again.members) == (1 if version == 9 else 0)
        assert new.sync().assignment == b"kept"
        assert old.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
        assert error(old.join()) == "FENCED_INSTANCE_ID"
        assert error(old.sync()) == "FENCED_INSTANCE_ID"
        assert error(old.leave().members[0]) == "FENCED_INSTANCE_ID"

    def test_unknown(self, new_member: NewMember) -> None:
        """An id of nobody with an instance of nobody: no name of a protocol in the answer."""
        member = new_member(instance_id="i")
        member.join()
        stranger = new_member(instance_id="j")
        stranger.member_id = "x"
        answer = stranger.join()
        assert (error(answer), answer.protocol_name, answer.member_id) == ("UNKNOWN_MEMBER_ID", None, "x")


@pytest.mark.parametrize("version", range(7))
def test_describe(new_member: NewMember, raw: RawClient, group_id: str, version: int) -> None:
    """A stable group with its member, one that is not there, and an empty one."""
    member = new_member(protocols={"range": subscription("t")})
    member.join()
    member.sync({member.member_id: b"part"})
    request = DescribeGroupsRequest([group_id, "never-was"], version >= 3)
    wait_for_coordinator(raw, "never-was")
    groups = {group.group_id: group for group in raw.send(request, version).groups}
    described, missing = groups[group_id], groups["never-was"]
    assert (error(described), described.group_state, described.protocol_type) == (
        "NONE",
        "Stable",
        "consumer",
    )
    assert described.protocol_data == "range"
    assert described.authorized_operations == (3400 if version >= 3 else -(2**31))
    (found,) = described.members
    assert (found.member_id, found.client_id) == (member.member_id, "raw-client")
    assert (found.client_host, found.group_instance_id) == ("/127.0.0.1", None)
    assert (found.member_metadata, found.member_assignment) == (subscription("t"), b"part")
    assert missing.group_state == "Dead"
    assert error(missing) == ("GROUP_ID_NOT_FOUND" if version >= 6 else "NONE")
    assert missing.error_message == ("Group never-was not found." if version >= 6 else None)
    member.leave()
    (described,) = raw.send(DescribeGroupsRequest([group_id]), version).groups
    assert (described.group_state, described.protocol_type, described.members) == ("Empty", "consumer", [])
