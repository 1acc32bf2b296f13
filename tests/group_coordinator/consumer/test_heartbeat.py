"""ConsumerGroupHeartbeat: joining, handing over step by step, static members, leaving, time-outs."""

import pytest

from ottla.group_coordinator.consumer.member import MemberState
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.effects import TopicsChanged
from ottla.group_coordinator.topics import Topic
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.group_coordinator.consumer.member import Member, settle
from tests.group_coordinator.driver import Driver, FakeTopics

T, U = b"t" * 16, b"u" * 16


@pytest.fixture
def driver() -> Driver:
    """A shard with the topics t and u of four partitions each."""
    return Driver()


def group_of(driver: Driver, group_id: str = "g") -> ConsumerGroup:
    """The consumer group of this id."""
    group = driver.shard.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def test_the_first_member_gets_everything_at_once(driver: Driver) -> None:
    """One heartbeat makes the group, its epoch, the target and the assignment."""
    answer = (member := Member(driver, "m", "t")).join()
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m", 2, 5000)
    assert member.owned == {T: frozenset({0, 1, 2, 3})}
    assert group_of(driver).state_name == "Stable"


def test_a_second_member_waits_until_the_first_gave_up(driver: Driver) -> None:
    """The first keeps working on two partitions all the time; the second gets the others when they are free."""
    first, second = Member(driver, "a", "t"), Member(driver, "b", "t")
    first.join()
    driver.pass_ms(1000)
    second.join()
    assert (second.epoch, second.owned) == (3, {})
    group = group_of(driver)
    assert group.members["b"].state is MemberState.UNRELEASED_PARTITIONS

    answer = first.beat()
    assert (answer.member_epoch, first.count) == (2, 2)
    assert group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert second.beat().assignment is None

    assert first.beat().member_epoch == 3
    second.beat()
    assert second.owned == {T: frozenset({2, 3})}
    assert group.state_name == "Stable"


def test_targets_are_not_computed_more_often_than_the_interval(driver: Driver) -> None:
    """Members that join within a second of an assignment wait for the next one (KIP-1263)."""
    first, second = Member(driver, "a", "t"), Member(driver, "b", "t")
    first.join()
    second.join()
    group = group_of(driver)
    assert (group.group_epoch, group.assignment_epoch, group.state_name) == (3, 2, "Assigning")
    driver.pass_ms(1000)
    second.beat()
    assert group.assignment_epoch == 3


def test_an_interval_of_zero_assigns_at_once() -> None:
    """A group may override the interval."""
    driver = Driver()
    driver.overrides["g"] = {"consumer.assignment.interval.ms": "0", "consumer.heartbeat.interval.ms": "7000"}
    Member(driver, "a", "t").join()
    assert Member(driver, "b", "t").join().heartbeat_interval_ms == 7000
    assert group_of(driver).assignment_epoch == 3


def test_a_lost_answer_does_not_fence(driver: Driver) -> None:
    """A member that missed its new epoch comes with the one before, and is told again."""
    first, second = Member(driver, "a", "t"), Member(driver, "b", "t")
    first.join()
    driver.pass_ms(1000)
    second.join()
    first.beat()
    lost = first.beat(takes=False)
    assert lost.member_epoch == 3
    again = first.beat()
    assert (again.error_code, again.member_epoch) == (ErrorCode.NONE, 3)


def test_epochs_that_are_neither_current_nor_the_last_are_fenced(driver: Driver) -> None:
    """A smaller one, a greater one, and the last one with partitions that the member was not given."""
    first, second = Member(driver, "a", "t"), Member(driver, "b", "t")
    first.join()
    driver.pass_ms(1000)
    second.join()
    settle(driver, first, second)
    smaller = first.beat(member_epoch=1)
    assert smaller.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert smaller.error_message == (
        "The consumer group member has a smaller member epoch (1) than the one known by the group coordinator (3). "
        "The member must abandon all its partitions and rejoin."
    )
    assert first.beat(member_epoch=4).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert first.beat(member_epoch=2, topic_partitions=None).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_fenced_member_joins_again_under_its_id(driver: Driver) -> None:
    """Epoch 0 is welcome at any time."""
    member = Member(driver, "m", "t")
    member.join()
    assert member.join().member_epoch == 2
    assert member.count == 4


def test_a_full_request_is_told_the_assignment(driver: Driver) -> None:
    """An ordinary heartbeat is not, when nothing changed."""
    member = Member(driver, "m", "t")
    member.join()
    assert member.beat().assignment is None
    full = member.beat(rebalance_timeout_ms=1, subscribed_topic_names=["t"])
    assert full.assignment is not None


def test_a_changed_subscription_moves_within_one_epoch(driver: Driver) -> None:
    """What is no longer subscribed to is revoked before the rest is assigned."""
    member = Member(driver, "m", "t")
    member.join()
    driver.pass_ms(1000)
    assert member.beat(subscribed_topic_names=["u"]).member_epoch == 2
    assert member.owned == {}
    member.beat()
    assert (member.epoch, member.owned) == (3, {U: frozenset({0, 1, 2, 3})})


def test_a_session_that_ends_frees_the_partitions(driver: Driver) -> None:
    """45 seconds without a heartbeat; the other member gets everything with its next one."""
    first, second = Member(driver, "a", "t"), Member(driver, "b", "t")
    first.join()
    driver.pass_ms(1000)
    second.join()
    settle(driver, first, second)
    driver.pass_ms(33_000)
    second.beat()
    driver.pass_ms(12_000)
    assert set(group_of(driver).members) == {"b"}
    second.beat()
    assert second.count == 4
    assert first.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_give_up_in_time_is_removed(driver: Driver) -> None:
    """The rebalance timeout runs while a member has to revoke, although its heartbeats go on."""
    first = Member(driver, "a", "t", rebalance_timeout_ms=10_000)
    second = Member(driver, "b", "t")
    first.join()
    driver.pass_ms(1000)
    second.join()
    first.beat(takes=False)
    for _ in range(9):
        driver.pass_ms(1000)
        assert first.beat(takes=False).error_code == ErrorCode.NONE
    driver.pass_ms(1000)
    assert first.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    settle(driver, second)
    assert second.count == 4


def test_time_to_give_up_ends_with_giving_up(driver: Driver) -> None:
    """A member that revoked in time is not removed by the timer later."""
    first = Member(driver, "a", "t", rebalance_timeout_ms=10_000)
    second = Member(driver, "b", "t")
    first.join()
    driver.pass_ms(1000)
    second.join()
    settle(driver, first, second, rounds=15)
    assert (first.count, second.count) == (2, 2)


def test_time_to_give_up_is_over_when_a_static_member_goes_away(driver: Driver) -> None:
    """It has its session to come back, however little time it had to give something up."""
    first = Member(driver, "a", "t", instance_id="i", rebalance_timeout_ms=5000)
    first.join()
    driver.pass_ms(1000)
    Member(driver, "b", "t").join()
    first.beat()
    assert group_of(driver).members["a"].state is MemberState.UNREVOKED_PARTITIONS
    first.leave(-2)
    driver.pass_ms(6000)
    assert "a" in group_of(driver).members
    assert Member(driver, "c", "t", instance_id="i").join().error_code == ErrorCode.NONE


def test_leaving(driver: Driver) -> None:
    """-1: the member is gone, its epoch comes back in the answer, the group starts a new epoch."""
    member = Member(driver, "m", "t")
    member.join()
    answer = member.leave()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m", -1)
    assert (group_of(driver).state_name, group_of(driver).group_epoch) == ("Empty", 3)
    assert not [key for key in driver.timers if key.member_id]
    assert member.leave().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_comes_back_to_its_partitions(driver: Driver) -> None:
    """-2 keeps its place; a new member id takes it over without a new epoch of the group."""
    Member(driver, "a", "t", instance_id="i").join()
    driver.pass_ms(1000)
    other = Member(driver, "o", "t")
    other.join()
    first = Member(driver, "a", "t", instance_id="i")
    first.epoch, first.owned = 2, {T: frozenset({0, 1, 2, 3})}
    settle(driver, first, other)
    kept = first.owned
    answer = first.leave(-2)
    assert (answer.member_id, answer.member_epoch) == ("a", -2)
    again = Member(driver, "z", "t", instance_id="i")
    again.join()
    assert (again.epoch, again.owned) == (3, kept)
    assert (set(group_of(driver).members), group_of(driver).group_epoch) == ({"z", "o"}, 3)
    assert other.beat().assignment is None


def test_a_static_member_that_stays_away_loses_its_place(driver: Driver) -> None:
    """Its session goes on while it is away."""
    member = Member(driver, "a", "t", instance_id="i")
    member.join()
    member.leave(-2)
    driver.pass_ms(44_999)
    assert group_of(driver).members
    driver.pass_ms(1)
    assert not group_of(driver).members


def test_instance_ids_are_exclusive(driver: Driver) -> None:
    """A second process with the same instance id, the first one after it was replaced, and an unknown one."""
    first = Member(driver, "a", "t", instance_id="i")
    first.join()
    second = Member(driver, "b", "t", instance_id="i")
    assert second.join().error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    first.leave(-2)
    second.join()
    first.epoch = 2
    assert first.beat().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert Member(driver, "c", "t", instance_id="j").leave(-2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_is_full(driver: Driver) -> None:
    """Members that are in it may go on, and a static member may be replaced."""
    driver = Driver(group_consumer_max_size="1")
    member = Member(driver, "a", "t", instance_id="i")
    member.join()
    refused = Member(driver, "b", "t").join()
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.error_message == "The consumer group has reached its maximum capacity of 1 members."
    assert member.beat().error_code == ErrorCode.NONE
    member.leave(-2)
    assert Member(driver, "c", "t", instance_id="i").join().error_code == ErrorCode.NONE


def test_the_assignor_that_most_members_ask_for(driver: Driver) -> None:
    """Range for two of three; the first configured one when nobody asks."""
    Member(driver, "a", "t", "u").join()
    assert driver.shard.describe_consumer_group("g").assignor_name == "uniform"
    driver.pass_ms(1000)
    for name in "bc":
        Member(driver, name, "t", "u", assignor="range").join()
        driver.pass_ms(1000)
    described = driver.shard.describe_consumer_group("g")
    assert described.assignor_name == "range"
    targets = {member.member_id: member.target_assignment for member in described.members}
    assert [each.partitions for each in targets["a"].topic_partitions] == [[0, 1], [0, 1]]


def test_new_partitions_are_assigned(driver: Driver) -> None:
    """A topic that grows is noticed with the next heartbeat."""
    member = Member(driver, "m", "t")
    member.join()
    driver.pass_ms(1000)
    member.beat()
    driver.topics.topics["t"] = Topic("t", T, 6)
    assert member.beat().member_epoch == 2
    driver.happen(TopicsChanged(frozenset({"t"}), frozenset()))
    member.beat()
    assert (member.epoch, member.owned) == (3, {T: frozenset(range(6))})


def test_a_topic_that_is_created_later_is_assigned(driver: Driver) -> None:
    """A subscription may name what does not exist yet."""
    member = Member(driver, "m", "later")
    member.join()
    assert member.owned == {}
    driver.pass_ms(1000)
    driver.topics.topics["later"] = Topic("later", b"l" * 16, 1)
    driver.happen(TopicsChanged(frozenset({"later"}), frozenset()))
    member.beat()
    assert member.owned == {b"l" * 16: frozenset({0})}


def test_a_deleted_topic_is_taken_away(driver: Driver) -> None:
    """Its partitions are revoked, the others stay."""
    member = Member(driver, "m", "t", "u")
    member.join()
    driver.pass_ms(1000)
    del driver.topics.topics["t"]
    driver.happen(TopicsChanged(frozenset(), frozenset({"t"})))
    settle(driver, member)
    assert (member.epoch, member.owned) == (3, {U: frozenset({0, 1, 2, 3})})


def test_a_restart_keeps_members_and_gives_them_a_session() -> None:
    """Replay restores epochs and assignments; who does not come back is removed after its session."""
    driver = Driver()
    first, second = Member(driver, "a", "t"), Member(driver, "b", "t")
    first.join()
    driver.pass_ms(1000)
    second.join()
    settle(driver, first, second)
    driver.restart()
    assert first.beat().member_epoch == 3
    driver.pass_ms(44_000)
    first.beat()
    driver.pass_ms(1000)
    assert set(group_of(driver).members) == {"a"}


def test_version_0_members_may_leave_their_id_to_the_broker() -> None:
    """Since version 1 they make it themselves."""
    driver = Driver(FakeTopics())
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", rebalance_timeout_ms=1, subscribed_topic_names=[], topic_partitions=[]
    )
    assert driver.ask(request, api_version=0).member_id == "id1"
    refused = driver.ask(request, api_version=1)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "MemberId can't be empty.",
    )
