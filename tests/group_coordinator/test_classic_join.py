"""How members come into classic groups: ids, protocols, the first delay, static members, limits."""

import pytest

from ottla.group_coordinator.classic.group import ClassicGroup, GroupState
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.group_coordinator.classic_client import Member, form_group, subscription
from tests.group_coordinator.driver import Driver

DELAY_MS = 3000


def group_of(driver: Driver, group_id: str = "g") -> ClassicGroup:
    group = driver.shard.groups[group_id]
    assert isinstance(group, ClassicGroup)
    return group


def error_of(driver: Driver, waiter: int) -> ErrorCode:
    return ErrorCode(driver.answers[waiter].error_code)


def test_id_comes_first() -> None:
    """A new dynamic member is told its id, made of its client id, and has to come back with it."""
    driver = Driver()
    member = Member(driver)
    first = driver.answers[member.send_join()]
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id == "c-id1"
    member.member_id = first.member_id
    waiter = member.send_join()
    assert waiter not in driver.answers
    driver.pass_ms(DELAY_MS)
    answer = member.joined(waiter)
    assert (answer.generation_id, answer.leader, answer.protocol_name) == (1, "c-id1", "range")
    assert [each.member_id for each in answer.members] == ["c-id1"]


def test_id_does_not_come_first_in_old_versions() -> None:
    """Before version 4 the first request already makes a member."""
    driver = Driver()
    waiter = Member(driver).send_join(api_version=3)
    driver.pass_ms(DELAY_MS)
    assert error_of(driver, waiter) is ErrorCode.NONE


def test_rebalance_timeout_of_the_first_version_is_the_session_timeout() -> None:
    """Version 0 has no rebalance timeout of its own."""
    driver = Driver()
    Member(driver, session_timeout_ms=7000).send_join(api_version=0)
    assert group_of(driver).rebalance_timeout_ms == 7000


def test_first_rebalance_waits_for_others() -> None:
    """Members that start together end up in one generation: each newcomer prolongs the delay."""
    driver = Driver()
    members = [Member(driver) for _ in range(3)]
    waiters = []
    for member in members:
        waiters.append(member.join())
        driver.pass_ms(DELAY_MS - 1)
    assert not set(waiters) & set(driver.answers)
    driver.pass_ms(2 * DELAY_MS)
    assert {member.joined(waiter).generation_id for member, waiter in zip(members, waiters, strict=True)} == {
        1
    }


def test_first_rebalance_waits_no_longer_than_the_rebalance_timeout() -> None:
    """Newcomers cannot put the first generation off for ever."""
    driver = Driver()
    first = Member(driver, rebalance_timeout_ms=10_000)
    waiter = first.join()
    for _ in range(4):
        driver.pass_ms(2500)
        Member(driver, rebalance_timeout_ms=10_000).join()
    driver.pass_ms(DELAY_MS)
    first.joined(waiter)


def test_protocol_that_all_support_and_most_prefer() -> None:
    """Every member votes for the first of its protocols that everybody has."""
    driver = Driver()
    preferences = [("a", "b", "c"), ("c", "b", "a"), ("x", "b", "a")]
    members = [Member(driver, protocols=dict.fromkeys(names, b"")) for names in preferences]
    waiters = [member.join() for member in members]
    driver.pass_ms(10 * DELAY_MS)
    assert {driver.answers[waiter].protocol_name for waiter in waiters} == {"b"}


def test_leader_gets_everybodys_metadata() -> None:
    """The leader alone learns of the members, with what they said for the chosen protocol."""
    driver = Driver()
    members = [Member(driver, protocols={"range": subscription("t"), "p": bytes([n])}) for n in range(2)]
    members[1].protocols.pop("range")
    waiters = [member.join() for member in members]
    driver.pass_ms(10 * DELAY_MS)
    leader, follower = (member.joined(waiter) for member, waiter in zip(members, waiters, strict=True))
    assert [each.metadata for each in leader.members] == [b"\0", b"\1"]
    assert follower.members == []
    assert follower.leader == leader.member_id


def test_inconsistent_protocols() -> None:
    """Another protocol type, nothing in common, or no protocol at all does not get in."""
    driver = Driver()
    form_group(driver, Member(driver))
    for stranger in (
        Member(driver, protocol_type="connect"),
        Member(driver, protocols={"sticky": b""}),
        Member(driver, group_id="other", protocols={}),
        Member(driver, group_id="another", protocol_type=""),
    ):
        assert error_of(driver, stranger.send_join()) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_opaque_metadata_is_not_parsed() -> None:
    """Connect's protocol type carries whatever it likes, and so does a consumer."""
    driver = Driver()
    form_group(driver, Member(driver, protocol_type="connect", protocols={"eager": b"\xff" * 5}))
    assert group_of(driver).topics is None
    form_group(driver, Member(driver, group_id="h", protocols={"mine": b"\x7f"}))
    assert group_of(driver, "h").topics is None


@pytest.mark.parametrize("timeout_ms", [5999, 1_800_001])
def test_session_timeout_out_of_range(timeout_ms: int) -> None:
    """group.min.session.timeout.ms and group.max.session.timeout.ms are limits."""
    driver = Driver()
    member = Member(driver, session_timeout_ms=timeout_ms)
    assert error_of(driver, member.send_join()) is ErrorCode.INVALID_SESSION_TIMEOUT


def test_unknown_member() -> None:
    """An id that the group, or no group, gave out is refused; also one whose time is over."""
    driver = Driver()
    member = Member(driver)
    member.member_id = "made-up"
    assert error_of(driver, member.send_join()) is ErrorCode.UNKNOWN_MEMBER_ID
    assert "g" not in driver.shard.groups
    slow = Member(driver)
    slow.member_id = driver.answers[slow.send_join()].member_id
    driver.pass_ms(slow.session_timeout_ms)
    assert error_of(driver, slow.send_join()) is ErrorCode.UNKNOWN_MEMBER_ID


def test_group_max_size() -> None:
    """A full group takes nobody; after a rebalance the ones that were there are back in."""
    driver = Driver(group_max_size="2")
    members = [Member(driver), Member(driver)]
    form_group(driver, *members)
    assert error_of(driver, Member(driver).send_join()) is ErrorCode.GROUP_MAX_SIZE_REACHED
    waiters = [member.send_join() for member in members]
    assert [member.joined(waiter).generation_id for member, waiter in zip(members, waiters, strict=True)] == [
        2,
        2,
    ]


def test_joining_again_with_the_same_metadata() -> None:
    """A follower that did not get its answer gets it again, without a rebalance; the leader asks for one."""
    driver = Driver()
    leader, follower = Member(driver), Member(driver)
    form_group(driver, leader, follower)
    assert follower.joined(follower.send_join()).generation_id == 1
    assert group_of(driver).state is GroupState.STABLE
    leader.send_join()
    assert group_of(driver).state is GroupState.PREPARING_REBALANCE
    assert follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_changed_metadata_rebalances() -> None:
    """A member that subscribes to something else needs a new assignment."""
    driver = Driver()
    leader, follower = Member(driver), Member(driver)
    form_group(driver, leader, follower)
    follower.protocols = {"range": subscription("t", "u")}
    follower.send_join()
    assert group_of(driver).state is GroupState.PREPARING_REBALANCE


def test_join_while_the_leader_assigns() -> None:
    """Who is waiting for an assignment is sent back to join when somebody new comes."""
    driver = Driver()
    leader, follower = Member(driver), Member(driver)
    waiters = [leader.join(), follower.join()]
    driver.wait_for(*waiters)
    leader.joined(waiters[0])
    follower.joined(waiters[1])
    parked = follower.sync()
    assert parked not in driver.answers
    Member(driver).join()
    assert error_of(driver, parked) is ErrorCode.REBALANCE_IN_PROGRESS


def test_member_that_joins_twice_at_once() -> None:
    """The request that a client gave up is answered too, so that nobody waits for ever."""
    driver = Driver()
    member = Member(driver)
    first = member.join()
    second = member.send_join()
    assert error_of(driver, first) is ErrorCode.REBALANCE_IN_PROGRESS
    driver.pass_ms(DELAY_MS)
    member.joined(second)


class TestStaticMembers:
    """Members with a group instance id."""

    def test_restart_without_rebalance(self) -> None:
        """The instance gets its assignment back under a new id, and nobody else notices."""
        driver = Driver()
        static, other = Member(driver, instance_id="i"), Member(driver)
        form_group(driver, static, other)
        old_id, static.member_id = static.member_id, ""
        again = static.joined(static.send_join())
        assert (again.generation_id, again.skip_assignment) == (1, True)
        assert again.member_id.startswith("i-")
        assert again.leader == again.member_id
        assert len(again.members) == 2
        waiter = static.sync()
        assert driver.answers[waiter].assignment == old_id.encode()
        assert other.heartbeat() == ErrorCode.NONE
        driver.restart()
        assert static.heartbeat() == ErrorCode.NONE

    def test_restart_of_an_old_leader(self) -> None:
        """One that cannot skip the assignment is told that its former self leads."""
        driver = Driver()
        static = Member(driver, instance_id="i")
        form_group(driver, static)
        old_id, static.member_id = static.member_id, ""
        again = static.joined(static.send_join(api_version=8))
        assert (again.leader, again.members) == (old_id, [])

    def test_fenced(self) -> None:
        """The former self of an instance learns that it has been replaced."""
        driver = Driver()
        old, new = Member(driver, instance_id="i"), Member(driver, instance_id="i")
        form_group(driver, old)
        new.joined(new.send_join())
        assert old.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
        assert error_of(driver, old.send_join()) is ErrorCode.FENCED_INSTANCE_ID
        assert error_of(driver, old.sync()) is ErrorCode.FENCED_INSTANCE_ID
        assert old.leave().members[0].error_code == ErrorCode.FENCED_INSTANCE_ID

    def test_fenced_while_parked(self) -> None:
        """Also while it waits for the group."""
        driver = Driver()
        old = Member(driver, instance_id="i").send_join()
        new = Member(driver, instance_id="i").send_join()
        assert error_of(driver, old) is ErrorCode.FENCED_INSTANCE_ID
        driver.pass_ms(2 * DELAY_MS)
        assert error_of(driver, new) is ErrorCode.NONE

    def test_restart_with_another_protocol(self) -> None:
        """When the chosen protocol would change, everybody has to rebalance."""
        driver = Driver()
        static = Member(driver, instance_id="i", protocols={"a": b"", "b": b""})
        form_group(driver, static)
        static.member_id, static.protocols = "", {"b": b"", "a": b""}
        assert static.joined(static.send_join()).generation_id == 2

    def test_absent_instance_keeps_its_place(self) -> None:
        """An instance that does not join keeps its place until its session is over."""
        driver = Driver()
        static = Member(driver, instance_id="i", session_timeout_ms=120_000)
        other = Member(driver)
        form_group(driver, static, other)
        waiter = other.send_join()
        if waiter in driver.answers:
            other.protocols = {"range": subscription("u")}
            waiter = other.send_join()
        driver.pass_ms(60_000)
        answer = other.joined(waiter)
        assert answer.leader == other.member_id
        assert len(answer.members) == 2

    def test_unknown_instance(self) -> None:
        """An instance id with a member id that nobody knows."""
        driver = Driver()
        form_group(driver, Member(driver))
        request = JoinGroupRequest(
            "g", 10_000, 60_000, "m", "nobody", "consumer", [JoinGroupRequestProtocol("range", b"")]
        )
        answer = driver.ask(request)
        assert (answer.error_code, answer.protocol_name) == (ErrorCode.UNKNOWN_MEMBER_ID, None)
