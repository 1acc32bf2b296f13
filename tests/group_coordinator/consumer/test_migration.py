"""Classic groups become consumer groups and back, while their members go on."""

from typing import Any

import pytest

from ottla.group_coordinator.classic.group import ClassicGroup
from ottla.group_coordinator.consumer.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
)
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.schema import encode
from tests.group_coordinator.classic_client import Member as ClassicMember
from tests.group_coordinator.consumer.member import Member
from tests.group_coordinator.driver import Driver

T = b"t" * 16


class ClassicConsumer(ClassicMember):
    """A consumer of the classic protocol with a cooperative assignor: it says what it owns when it joins."""

    def __init__(self, driver: Driver, **settings: Any) -> None:
        super().__init__(driver, **settings)
        self.owned: frozenset[int] = frozenset()
        self.subscribe()

    def subscribe(self) -> None:
        """Put what it owns into its subscription."""
        owned = [TopicPartition("t", sorted(self.owned))] if self.owned else []
        message = ConsumerProtocolSubscription(topics=["t"], owned_partitions=owned)
        self.protocols = {"cooperative-sticky": b"\0\1" + encode(message, 1)}

    def rejoin(self) -> None:
        """Join and sync once, as the coordinator asks."""
        self.subscribe()
        waiter = self.join()
        self.driver.wait_for(waiter)
        self.joined(waiter)
        waiter = self.sync(protocol_type="consumer", protocol_name="cooperative-sticky")
        self.driver.wait_for(waiter)
        answer = self.driver.answers[waiter]
        assert answer.error_code == ErrorCode.NONE
        assigned = read_assignment(answer.assignment).assigned_partitions
        self.owned = frozenset(assigned[0].partitions) if assigned else frozenset()

    def lead(self) -> None:
        """Form a classic group alone and take all of t."""
        waiter = self.join()
        self.driver.wait_for(waiter)
        self.joined(waiter)
        assignment = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition("t", [0, 1, 2, 3])])
        waiter = self.sync({self.member_id: b"\0\1" + encode(assignment, 1)})
        assert self.driver.answers[waiter].error_code == ErrorCode.NONE
        self.owned = frozenset({0, 1, 2, 3})


@pytest.fixture
def driver() -> Driver:
    """A shard."""
    return Driver()


def test_a_consumer_member_upgrades_a_classic_group(driver: Driver) -> None:
    """The old member keeps working, is told to rejoin, gives up half, and the new one gets it."""
    old = ClassicConsumer(driver)
    old.lead()
    new = Member(driver, "new", "t")
    assert new.join().error_code == ErrorCode.NONE
    group = driver.shard.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert (new.epoch, new.count) == (2, 0)

    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    old.rejoin()
    assert (old.generation_id, len(old.owned)) == (1, 2)
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    old.rejoin()
    assert old.generation_id == 2
    new.beat()
    assert (new.count, old.heartbeat(), group.state_name) == (2, ErrorCode.NONE, "Stable")
    types = {
        member.member_id: member.member_type for member in driver.shard.describe_consumer_group("g").members
    }
    assert types == {old.member_id: 0, "new": 1}


def test_members_parked_in_a_rebalance_are_told_to_join_again(driver: Driver) -> None:
    """An upgrade answers every waiter of the classic group."""
    old = ClassicConsumer(driver)
    waiter = old.join()
    Member(driver, "new", "t").join()
    assert driver.answers[waiter].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert not [key for key in driver.timers if key.kind.startswith("classic.")]


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_upgrades_may_be_forbidden(policy: str) -> None:
    """The classic group stays what it is."""
    driver = Driver(group_consumer_migration_policy=policy)
    old = ClassicConsumer(driver)
    old.lead()
    refused = Member(driver, "new", "t").join()
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Cannot upgrade classic group g to consumer group because online upgrade is disabled.",
    )
    assert old.heartbeat() == ErrorCode.NONE


def test_other_groups_are_not_upgraded(driver: Driver) -> None:
    """Members that are no consumers, and bytes that no consumer writes."""
    for group_id, settings, reason in [
        (
            "connect",
            {"protocol_type": "connect", "protocols": {"x": b"?"}},
            "the group does not use the consumer embedded protocol",
        ),
        ("odd", {"protocols": {"x": b"?"}}, "the embedded consumer protocol is malformed"),
    ]:
        ClassicMember(driver, group_id, **settings).join()
        driver.pass_ms(3000)
        refused = Member(driver, "new", "t", group_id=group_id).join()
        assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert (
            refused.error_message
            == f"Cannot upgrade classic group {group_id} to consumer group because {reason}."
        )


def test_an_empty_classic_group_is_replaced_under_any_policy() -> None:
    """There is nobody to convert."""
    driver = Driver(group_consumer_migration_policy="disabled")
    old = ClassicConsumer(driver)
    old.lead()
    old.leave()
    assert Member(driver, "new", "t").join().member_epoch == 2


def test_the_last_consumer_member_leaves_a_classic_group_behind(driver: Driver) -> None:
    """The classic member goes on in a rebalance of the old kind, with what it had."""
    old = ClassicConsumer(driver)
    old.lead()
    new = Member(driver, "new", "t")
    new.join()
    old.rejoin()
    old.rejoin()
    new.beat()
    new.leave()
    driver.pass_ms(0)
    group = driver.shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert (group.generation_id, group.state_name) == (2, "PreparingRebalance")
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    waiter = old.join()
    assert old.joined(waiter).leader == old.member_id
    assert old.generation_id == 3
    assert not [key for key in driver.timers if key.kind.startswith("consumer.")]


def test_downgrades_may_be_forbidden() -> None:
    """Then the group stays a consumer group of classic members."""
    driver = Driver(group_consumer_migration_policy="upgrade")
    old = ClassicConsumer(driver)
    old.lead()
    new = Member(driver, "new", "t")
    new.join()
    new.leave()
    assert isinstance(driver.shard.groups["g"], ConsumerGroup)


def test_a_static_member_that_returns_with_the_classic_protocol_downgrades(driver: Driver) -> None:
    """It takes the place and the partitions of its former self."""
    Member(driver, "new", "t", instance_id="i").join()
    back = ClassicConsumer(driver, instance_id="i")
    waiter = back.join()
    back.joined(waiter)
    group = driver.shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert set(group.members) == {back.member_id}
    waiter = back.sync()
    assignment = read_assignment(driver.answers[waiter].assignment)
    assert assignment.assigned_partitions == [TopicPartition("t", [0, 1, 2, 3])]


def test_classic_members_of_a_consumer_group_are_checked(driver: Driver) -> None:
    """Unknown members, other generations, members of the new protocol, other protocols."""
    Member(driver, "new", "t").join()
    old = ClassicConsumer(driver)
    old.member_id = "old"
    old.join()
    old.generation_id = 3
    assert old.heartbeat() == ErrorCode.ILLEGAL_GENERATION
    old.member_id, old.generation_id = "new", 2
    assert old.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    old.member_id = "x"
    assert old.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    old.protocol_type = "connect"
    assert driver.answers[old.join()].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    old.protocol_type, old.protocols = "consumer", {"cooperative-sticky": b"x"}
    assert driver.answers[old.join()].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    old.session_timeout_ms = 1
    assert driver.answers[old.join()].error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_classic_member_that_does_not_rejoin_or_sync_is_removed(driver: Driver) -> None:
    """Its rebalance timeout runs from when it was first told, whatever heartbeats it sends."""
    old = ClassicConsumer(driver, rebalance_timeout_ms=20_000)
    old.lead()
    new = Member(driver, "new", "t")
    new.join()
    for _ in range(4):
        assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        driver.pass_ms(5000)
        new.beat()
    assert old.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    new.beat()
    assert new.count == 4


def test_leaving_a_consumer_group_with_leave_group(driver: Driver) -> None:
    """Each identity has its own answer; admins name static members by instance id only."""
    Member(driver, "a", "t").join()
    Member(driver, "b", "t", instance_id="i").join()
    identities = [MemberIdentity("a"), MemberIdentity("", "i"), MemberIdentity("x"), MemberIdentity("", "j")]
    answer = driver.ask(LeaveGroupRequest("g", members=identities))
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert [each.error_code for each in answer.members] == [0, 0, unknown, unknown]
    assert driver.shard.groups["g"].is_empty


def test_replay_of_both_conversions_gives_the_same_groups(driver: Driver) -> None:
    """A restart in between or after finds what there was."""
    old = ClassicConsumer(driver)
    old.lead()
    new = Member(driver, "new", "t")
    new.join()
    replayed = driver.replayed().groups["g"]
    assert isinstance(replayed, ConsumerGroup)
    live = driver.shard.groups["g"]
    assert isinstance(live, ConsumerGroup)
    assert (replayed.members, replayed.target) == (live.members, live.target)
    new.leave()
    again = driver.replayed().groups["g"]
    assert isinstance(again, ClassicGroup)
    assert set(again.members) == {old.member_id}
