"""The server-side assignors: complete, exclusive, balanced, sticky."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.group_coordinator.consumer.assignors import ASSIGNORS
from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, MemberSpec, Partitions
from ottla.wire.uuids import Uuid
from tests.group_coordinator.consumer.groups import group_specs, topic_id

any_group = st.booleans().flatmap(lambda homogeneous: group_specs(homogeneous=homogeneous))
A, B = topic_id(1), topic_id(2)


def flat(assigned: Partitions) -> set[tuple[Uuid, int]]:
    """An assignment as pairs."""
    return {(topic, partition) for topic, partitions in assigned.items() for partition in partitions}


def size(assigned: Partitions) -> int:
    """How many partitions it has."""
    return sum(map(len, assigned.values()))


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=any_group)
def test_every_partition_of_a_subscribed_topic_has_one_owner(name: str, group: GroupSpec) -> None:
    """Nothing is left out, nothing is given twice, nothing goes to a member that did not subscribe to it."""
    result = ASSIGNORS[name](group)
    owners = Counter(pair for assigned in result.values() for pair in flat(assigned))
    topics = frozenset().union(*(member.topic_ids for member in group.members.values()))
    assert owners == Counter(
        (topic, number) for topic in topics for number in range(group.partition_counts[topic])
    )
    for member_id, assigned in result.items():
        assert assigned.keys() <= group.members[member_id].topic_ids
        assert all(assigned.values())


@given(group=group_specs(homogeneous=True))
def test_uniform_counts_differ_by_one_at_most(group: GroupSpec) -> None:
    """With equal subscriptions the balance is perfect, whatever was assigned before."""
    sizes = [size(assigned) for assigned in ASSIGNORS["uniform"](group).values()]
    assert max(sizes) - min(sizes) <= 1


@given(group=group_specs(homogeneous=True))
def test_uniform_moves_as_little_as_balance_allows(group: GroupSpec) -> None:
    """A member loses partitions only to get down to the largest count, and none that it could have kept."""
    result = ASSIGNORS["uniform"](group)
    ceiling = max(size(assigned) for assigned in result.values())
    for member_id, member in group.members.items():
        held = {pair for pair in flat(member.assigned) if pair[0] in member.topic_ids}
        kept = held & flat(result[member_id])
        assert len(kept) >= min(len(held), ceiling - 1)


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=any_group)
def test_an_assignment_is_its_own_successor(name: str, group: GroupSpec) -> None:
    """Assigning again with nothing changed moves nothing."""
    first = ASSIGNORS[name](group)
    members = {
        member_id: MemberSpec(member.topic_ids, first.get(member_id, {}), member.instance_id)
        for member_id, member in group.members.items()
    }
    again = ASSIGNORS[name](GroupSpec(members, group.partition_counts, group.homogeneous))
    if group.homogeneous or name == "range":
        assert again == first
    else:
        # Overlapping subscriptions may need more rounds than one call makes; it never gets worse.
        spread = [size(assigned) for assigned in first.values()]
        spread_again = [size(assigned) for assigned in again.values()]
        assert sum(count * count for count in spread_again) <= sum(count * count for count in spread)


def test_uniform_takes_only_what_a_newcomer_needs() -> None:
    """A third member gets its share and no partition changes hands between the other two."""
    before = {"a": {A: frozenset({0, 1, 2})}, "b": {A: frozenset({3, 4, 5})}}
    members = {name: MemberSpec(frozenset({A}), assigned) for name, assigned in before.items()}
    result = ASSIGNORS["uniform"](GroupSpec({**members, "c": MemberSpec(frozenset({A}))}, {A: 6}, True))
    assert result == {"a": {A: frozenset({0, 1})}, "b": {A: frozenset({3, 4})}, "c": {A: frozenset({2, 5})}}


def test_uniform_leaves_alone_who_loses_nothing() -> None:
    """A member that keeps all it has gets the very same mapping back, so that large groups cost little."""
    before = {"a": {A: frozenset({0, 1})}, "b": {A: frozenset({2, 3, 4, 5})}}
    members = {name: MemberSpec(frozenset({A}), assigned) for name, assigned in before.items()}
    result = ASSIGNORS["uniform"](GroupSpec({**members, "c": MemberSpec(frozenset({A}))}, {A: 6}, True))
    assert result["a"] is before["a"]


def test_range_gives_equal_topics_equal_ranges() -> None:
    """Co-partitioning: the same numbers of both topics, the extra ones to the first member."""
    both = frozenset({A, B})
    group = GroupSpec({"m2": MemberSpec(both), "m1": MemberSpec(both)}, {A: 3, B: 3}, True)
    assert ASSIGNORS["range"](group) == {
        "m1": {A: frozenset({0, 1}), B: frozenset({0, 1})},
        "m2": {A: frozenset({2}), B: frozenset({2})},
    }


def test_range_orders_static_members_by_instance_id_and_first() -> None:
    """A static member keeps its range under a new member id; dynamic members come after it."""
    one = frozenset({A})
    group = GroupSpec({"a": MemberSpec(one), "z": MemberSpec(one, instance_id="i")}, {A: 3}, True)
    assert ASSIGNORS["range"](group) == {"z": {A: frozenset({0, 1})}, "a": {A: frozenset({2})}}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_no_members_and_no_topics(name: str) -> None:
    """An empty group has an empty assignment, members without topics have none."""
    assert ASSIGNORS[name](GroupSpec({}, {}, True)) == {}
    assert not any(ASSIGNORS[name](GroupSpec({"a": MemberSpec(frozenset())}, {}, True)).values())
