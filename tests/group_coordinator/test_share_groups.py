"""Members of share groups: joining, assignments, sessions, and what the log gives back."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, MemberSpec
from ottla.group_coordinator.effects import (
    InitializeShareState,
    ShareMemberGone,
    ShareStateInitialized,
    ShareStateRemoved,
    TopicsChanged,
)
from ottla.group_coordinator.share.assignor import assign_simple
from ottla.group_coordinator.share.state import ShareGroup
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.group_coordinator.driver import Driver

T, U = b"t" * 16, b"u" * 16


def beat(driver: Driver, member_id: str, epoch: int, *topics: str) -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, subscribed_topic_names=list(topics) or None
    )
    return driver.ask(request)


def initialize(driver: Driver) -> None:
    """Do what the server does about partitions without state."""
    for effect in driver.share_effects:
        if isinstance(effect, InitializeShareState):
            driver.happen(ShareStateInitialized(effect.group_id, effect.partitions))
    driver.share_effects.clear()


def assigned(answer: Any) -> dict[bytes, list[int]]:
    return {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}


def group_of(driver: Driver) -> ShareGroup:
    return driver.shard.share_group("g")


def test_only_initialised_partitions_are_assigned() -> None:
    """A joining member asks for states; when they are there, the next heartbeat brings the partitions."""
    driver = Driver(group_share_assignment_interval_ms="0")
    joined = beat(driver, "a", 0, "t")
    assert (joined.error_code, joined.member_epoch, assigned(joined)) == (0, 2, {})
    (effect,) = driver.share_effects
    assert effect == InitializeShareState("g", 2, {T: frozenset(range(4))})
    assert beat(driver, "a", 2).assignment is None
    assert len(driver.share_effects) == 1  # it is on its way
    initialize(driver)
    answer = beat(driver, "a", 2)
    assert (answer.member_epoch, assigned(answer)) == (3, {T: [0, 1, 2, 3]})
    assert beat(driver, "a", 2).member_epoch == 3  # the answer before was lost
    assert beat(driver, "a", 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_states_are_asked_for_again() -> None:
    """What was not initialised after a while is asked for once more."""
    driver = Driver()
    beat(driver, "a", 0, "t")
    driver.share_effects.clear()
    driver.pass_ms(29_999)
    beat(driver, "a", 2)
    assert driver.share_effects == []
    driver.pass_ms(1)
    beat(driver, "a", 2)
    assert [type(effect) for effect in driver.share_effects] == [InitializeShareState]


def test_sessions_end() -> None:
    """A silent member is removed, and the server is told to take its records back."""
    driver = Driver(group_share_assignment_interval_ms="0")
    beat(driver, "a", 0, "t")
    initialize(driver)
    epoch = beat(driver, "a", 2).member_epoch
    driver.pass_ms(44_000)
    beat(driver, "b", 0, "t")
    driver.pass_ms(1_000)
    assert list(group_of(driver).members) == ["b"]
    assert driver.share_effects == [ShareMemberGone("g", "a", group_is_empty=False)]
    assert beat(driver, "a", epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(driver, "b", -1).member_epoch == -1
    assert driver.share_effects[-1] == ShareMemberGone("g", "b", group_is_empty=True)
    assert group_of(driver).state_name == "Empty"


def test_replay_and_sessions_after_it() -> None:
    """The log gives everything back, and members have a whole session to show up."""
    driver = Driver(group_share_assignment_interval_ms="0")
    beat(driver, "a", 0, "t", "u")
    initialize(driver)
    beat(driver, "a", 2)
    before = vars(group_of(driver))
    driver.restart()
    after = vars(group_of(driver))
    for name in ("group_epoch", "assignment_epoch", "members", "target", "metadata_hash", "name_counts"):
        assert before[name] == after[name], name
    assert group_of(driver).state_metadata.initialized_partitions == {
        T: frozenset(range(4)),
        U: frozenset(range(4)),
    }
    driver.pass_ms(45_000)
    assert group_of(driver).is_empty


def test_deleted_topics_and_admins() -> None:
    """States of deleted topics are forgotten, as are those an admin deletes; an admin may make a group."""
    driver = Driver()
    beat(driver, "a", 0, "t", "u")
    initialize(driver)
    del driver.topics.topics["u"]
    driver.happen(TopicsChanged(frozenset(), frozenset({"u"})))
    assert list(group_of(driver).state_metadata.initialized) == [T]
    driver.happen(ShareStateRemoved("g", frozenset({T})))
    assert group_of(driver).state_metadata.all_partitions == {}
    driver.happen(ShareStateInitialized("other", {T: frozenset({1})}))
    assert "other" not in driver.shard.groups
    driver.happen(ShareStateInitialized("other", {T: frozenset({1})}, creates_group=True))
    assert driver.shard.share_group("other").state_metadata.initialized_partitions == {T: frozenset({1})}


def test_group_is_full() -> None:
    """One member too many is refused; who is one already is not."""
    driver = Driver(group_share_max_size="1")
    beat(driver, "a", 0, "t")
    assert beat(driver, "b", 0, "t").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert beat(driver, "a", 0, "t").error_code == ErrorCode.NONE


@given(
    st.dictionaries(
        st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from([T, U]), min_size=1), min_size=1
    ),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_simple_assignor(subscriptions: dict[str, frozenset[bytes]], count: int, other_count: int) -> None:
    """Every partition with a subscriber has one, members are busy when they can be, and a balance is kept."""
    counts = {T: count, U: other_count}
    assignable = {topic_id: frozenset(range(number)) for topic_id, number in counts.items()}
    subscribed = frozenset().union(*subscriptions.values())
    homogeneous = len(set(subscriptions.values())) == 1
    spec = GroupSpec(
        {member: MemberSpec(topics) for member, topics in subscriptions.items()},
        {topic_id: counts[topic_id] for topic_id in subscribed},
        homogeneous,
    )
    result = assign_simple(spec, assignable)
    for member, partitions in result.items():
        assert partitions.keys() <= subscriptions[member]
        if any(counts[topic_id] for topic_id in subscriptions[member]):
            assert partitions
    for topic_id in subscribed:
        given_out = {index for partitions in result.values() for index in partitions.get(topic_id, ())}
        assert given_out == assignable[topic_id]
    if homogeneous:
        sizes = [sum(map(len, partitions.values())) for partitions in result.values()]
        assert max(sizes) - min(sizes) <= 1
        again = GroupSpec(
            {member: MemberSpec(topics, result[member]) for member, topics in subscriptions.items()},
            spec.partition_counts,
            True,
        )
        assert assign_simple(again, assignable) == result
