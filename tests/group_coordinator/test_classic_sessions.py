"""Members of classic groups that sync, stay, leave and vanish, and every time-out on the way."""

import pytest

from ottla.group_coordinator.classic.group import TRANSITIONS, GroupState
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest
from tests.group_coordinator.classic_client import Member, form_group, subscription
from tests.group_coordinator.driver import Driver
from tests.group_coordinator.test_classic_join import error_of, group_of


def test_every_state_is_in_the_table() -> None:
    """A group can always go somewhere, and never to where it is."""
    assert set(TRANSITIONS) == set(GroupState)
    assert all(after and state not in after for state, after in TRANSITIONS.items())


def test_impossible_transition() -> None:
    """The table is kept to."""
    driver = Driver()
    form_group(driver, Member(driver))
    with pytest.raises(ValueError, match="cannot go from Stable to Empty"):
        group_of(driver).transition_to(GroupState.EMPTY, 0)


class TestSync:
    def test_members_without_assignment_get_an_empty_one(self) -> None:
        """The leader need not think of everybody, and may think of strangers."""
        driver = Driver()
        leader, follower = Member(driver), Member(driver)
        waiters = [leader.join(), follower.join()]
        driver.wait_for(*waiters)
        leader.joined(waiters[0])
        follower.joined(waiters[1])
        parked = follower.sync()
        own = leader.sync({leader.member_id: b"l", "stranger": b"s"})
        assert driver.answers[own].assignment == b"l"
        assert driver.answers[parked].assignment == b""
        assert driver.answers[parked].protocol_name == "range"

    def test_late_follower(self) -> None:
        """Who syncs when the group is stable gets its part at once, as often as it asks."""
        driver = Driver()
        member = Member(driver)
        form_group(driver, member)
        assert driver.answers[member.sync()].assignment == member.member_id.encode()

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
            ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
            ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ],
    )
    def test_refused(self, change: dict[str, object], error: ErrorCode) -> None:
        """Strangers, other generations and other protocols."""
        driver = Driver()
        member = Member(driver)
        form_group(driver, member)
        request = SyncGroupRequest("g", 1, member.member_id)
        for name, value in change.items():
            setattr(request, name, value)
        assert driver.ask(request).error_code == error

    def test_during_a_rebalance(self) -> None:
        """There is no assignment to get."""
        driver = Driver()
        leader, follower = Member(driver), Member(driver)
        form_group(driver, leader, follower)
        leader.send_join()
        assert error_of(driver, follower.sync()) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_empty_group(self) -> None:
        """Nobody is in it."""
        driver = Driver()
        member = Member(driver)
        form_group(driver, member)
        member.leave()
        assert error_of(driver, member.sync()) is ErrorCode.UNKNOWN_MEMBER_ID


class TestHeartbeat:
    @pytest.mark.parametrize(
        ("member_id", "generation_id", "error"),
        [
            (None, 1, ErrorCode.NONE),
            (None, 2, ErrorCode.ILLEGAL_GENERATION),
            ("x", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ],
    )
    def test_answers(self, member_id: str | None, generation_id: int, error: ErrorCode) -> None:
        """Alive, of another generation, unknown."""
        driver = Driver()
        member = Member(driver)
        form_group(driver, member)
        request = HeartbeatRequest("g", generation_id, member_id or member.member_id)
        assert driver.ask(request).error_code == error

    def test_unknown_group(self) -> None:
        """A group that is not there has no members."""
        assert Driver().ask(HeartbeatRequest("g", 1, "m")).error_code == ErrorCode.UNKNOWN_MEMBER_ID


class TestLeave:
    def test_several_at_once(self) -> None:
        """Each has its own result, and the others rebalance once."""
        driver = Driver()
        members = [Member(driver), Member(driver, instance_id="i"), Member(driver)]
        form_group(driver, *members)
        identities = [
            MemberIdentity(members[0].member_id),
            MemberIdentity("", "i"),
            MemberIdentity("", "nobody"),
            MemberIdentity("stranger"),
            MemberIdentity(members[2].member_id, "i"),
        ]
        answer = driver.ask(LeaveGroupRequest("g", members=identities))
        assert [each.error_code for each in answer.members] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]
        assert list(group_of(driver).members) == [members[2].member_id]
        assert members[2].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS

    def test_last_one(self) -> None:
        """The group is empty, in a new generation, and its record says so."""
        driver = Driver()
        member = Member(driver)
        form_group(driver, member)
        member.leave()
        group = group_of(driver)
        assert (group.state, group.generation_id, group.leader_id) == (GroupState.EMPTY, 2, None)
        assert group.persisted is not None
        assert group.persisted.members == []
        assert not any(key.member_id for key in driver.timers)

    def test_pending_member(self) -> None:
        """An id that was given out is taken back."""
        driver = Driver()
        member = Member(driver)
        member.member_id = driver.answers[member.send_join()].member_id
        assert member.leave().members[0].error_code == ErrorCode.NONE
        assert error_of(driver, member.send_join()) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_unknown_group(self) -> None:
        """Every member of a group that is not there is unknown."""
        answer = Driver().ask(LeaveGroupRequest("g", members=[MemberIdentity("a"), MemberIdentity("b")]))
        assert answer.error_code == ErrorCode.NONE
        assert {each.error_code for each in answer.members} == {ErrorCode.UNKNOWN_MEMBER_ID}


class TestTimeouts:
    def test_session(self) -> None:
        """A silent member is removed to the millisecond, a heartbeat before keeps it in."""
        driver = Driver()
        member = Member(driver)
        form_group(driver, member)
        driver.pass_ms(9_999)
        assert member.heartbeat() == ErrorCode.NONE
        driver.pass_ms(9_999)
        assert group_of(driver).members
        driver.pass_ms(1)
        assert group_of(driver).state is GroupState.EMPTY
        assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID

    def test_others_rebalance_when_one_vanishes(self) -> None:
        """The one that stays is told, joins and has everything to itself."""
        driver = Driver()
        stays, vanishes = Member(driver), Member(driver)
        form_group(driver, stays, vanishes)
        driver.pass_ms(5_000)
        stays.heartbeat()
        driver.pass_ms(5_000)
        assert stays.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        answer = stays.joined(stays.send_join())
        assert [each.member_id for each in answer.members] == [stays.member_id]

    def test_rebalance_timeout(self) -> None:
        """Who stays alive but does not join is left behind after the rebalance timeout."""
        driver = Driver()
        leader, slow = Member(driver), Member(driver)
        form_group(driver, leader, slow)
        waiter = leader.send_join()
        for _ in range(11):
            driver.pass_ms(5_000)
            assert slow.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        assert waiter not in driver.answers
        driver.pass_ms(5_000)
        assert len(leader.joined(waiter).members) == 1
        assert slow.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID

    def test_sync_timeout(self) -> None:
        """A member that joins, stays alive and never syncs is removed after the rebalance timeout."""
        driver = Driver()
        leader, follower = Member(driver), Member(driver)
        waiters = [leader.join(), follower.join()]
        driver.wait_for(*waiters)
        leader.joined(waiters[0])
        follower.joined(waiters[1])
        parked = leader.sync({leader.member_id: b"a"})
        for _ in range(11):
            driver.pass_ms(5_000)
            follower.heartbeat()
            leader.heartbeat()
        driver.pass_ms(5_000)
        assert follower.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        assert driver.answers[parked].assignment == b"a"

    def test_leader_that_vanishes_before_assigning(self) -> None:
        """Those who wait for its assignment are sent to join again, under a new leader."""
        driver = Driver()
        leader, follower = Member(driver), Member(driver, session_timeout_ms=30_000)
        waiters = [leader.join(), follower.join()]
        driver.wait_for(*waiters)
        leader.joined(waiters[0])
        follower.joined(waiters[1])
        parked = follower.sync()
        driver.pass_ms(leader.session_timeout_ms)
        assert error_of(driver, parked) is ErrorCode.REBALANCE_IN_PROGRESS
        answer = follower.joined(follower.send_join())
        assert answer.leader == follower.member_id

    def test_new_member_that_vanishes_while_parked(self) -> None:
        """It is given up after five minutes, and its request answered."""
        driver = Driver()
        stays, newcomer = Member(driver, rebalance_timeout_ms=1_000_000), Member(driver)
        form_group(driver, stays)
        waiter = newcomer.join()
        for _ in range(59):
            driver.pass_ms(5_000)
            stays.heartbeat()
        assert waiter not in driver.answers
        driver.pass_ms(5_000)
        assert error_of(driver, waiter) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_parked_member_needs_no_heartbeat(self) -> None:
        """A member that waits for the others cannot send any."""
        driver = Driver()
        leader, slow = Member(driver), Member(driver)
        form_group(driver, leader, slow)
        waiter = leader.send_join()
        for _ in range(4):
            driver.pass_ms(5_000)
            slow.heartbeat()
        slow.send_join()
        assert leader.joined(waiter).generation_id == 2

    def test_sessions_after_a_restart(self) -> None:
        """Everybody has a whole session timeout to show up."""
        driver = Driver()
        member = Member(driver)
        form_group(driver, member)
        driver.pass_ms(9_999)
        driver.restart()
        driver.pass_ms(9_999)
        assert member.heartbeat() == ErrorCode.NONE
        driver.pass_ms(10_000)
        assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID

    def test_too_large_after_a_restart(self) -> None:
        """A group above a lowered group.max.size shrinks by a rebalance."""
        driver = Driver()
        members = [Member(driver) for _ in range(3)]
        form_group(driver, *members)
        driver.config["group.max.size"] = "2"
        driver.restart()
        waiters = [member.send_join() for member in members]
        codes = [error_of(driver, waiter) for waiter in waiters]
        assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]

    def test_subscription_survives_a_restart(self) -> None:
        """The topics of the members are known from the log."""
        driver = Driver()
        form_group(driver, Member(driver, protocols={"range": subscription("t", "u")}))
        driver.restart()
        assert group_of(driver).topics == {"t", "u"}
