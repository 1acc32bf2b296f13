"""The simple assignor: spreads partitions over members, each partition to as many members as it takes to keep all busy.

With more members than partitions, partitions are shared. What a member has it keeps where the balance allows it.
Members that subscribe to the same topics share all partitions in one go, others topic by topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, Partitions
from ottla.wire.uuids import Uuid

SIMPLE: Final = "simple"

TopicPartition = tuple[Uuid, int]


def assign_simple(group: GroupSpec, assignable: Mapping[Uuid, frozenset[int]]) -> dict[str, Partitions]:
    """The assignment of every member; only assignable partitions are in it."""
    held: dict[str, set[TopicPartition]] = {member_id: set() for member_id in group.members}
    before = {
        member_id: {
            (topic_id, index)
            for topic_id, indexes in member.assigned.items()
            if topic_id in member.topic_ids
            for index in indexes & assignable.get(topic_id, frozenset())
        }
        for member_id, member in group.members.items()
    }
    if group.homogeneous:
        partitions = [
            each for topic_id in sorted(group.partition_counts) for each in _of(topic_id, assignable)
        ]
        _spread(partitions, list(group.members), before, held)
    else:
        for topic_id in sorted(group.partition_counts):
            subscribers = [each for each, member in group.members.items() if topic_id in member.topic_ids]
            kept = {
                member_id: {each for each in before[member_id] if each[0] == topic_id}
                for member_id in subscribers
            }
            _spread(list(_of(topic_id, assignable)), subscribers, kept, held)
    return {member_id: _by_topic(partitions) for member_id, partitions in held.items()}


def _of(topic_id: Uuid, assignable: Mapping[Uuid, frozenset[int]]) -> list[TopicPartition]:
    return [(topic_id, index) for index in sorted(assignable.get(topic_id, ()))]


def _spread(
    partitions: Sequence[TopicPartition],
    members: Sequence[str],
    before: Mapping[str, set[TopicPartition]],
    held: Mapping[str, set[TopicPartition]],
) -> None:
    """Add a share of the partitions to what each member holds."""
    if not partitions or not members:
        return
    sharing = -(-len(members) // len(partitions))
    total = sharing * len(partitions)
    wanted = {
        member_id: -(-total * (number + 1) // len(members)) - -(-total * number // len(members))
        for number, member_id in enumerate(members)
    }
    sharers: dict[TopicPartition, set[str]] = {each: set() for each in partitions}
    given = dict.fromkeys(members, 0)
    for member_id in members:
        for each in sorted(before[member_id]):
            if given[member_id] < wanted[member_id] and len(sharers[each]) < sharing:
                sharers[each].add(member_id)
                given[member_id] += 1
    unfilled = [member_id for member_id in members if given[member_id] < wanted[member_id]]
    for each in partitions:
        candidates = [member_id for member_id in unfilled if member_id not in sharers[each]]
        for member_id in candidates[: sharing - len(sharers[each])]:
            sharers[each].add(member_id)
            given[member_id] += 1
            # Whoever got one stands at the end of the line, unless it has enough.
            unfilled.remove(member_id)
            if given[member_id] < wanted[member_id]:
                unfilled.append(member_id)
    for each, its_members in sharers.items():
        for member_id in its_members:
            held[member_id].add(each)


def _by_topic(partitions: set[TopicPartition]) -> Partitions:
    found: dict[Uuid, set[int]] = {}
    for topic_id, index in partitions:
        found.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in found.items()}
