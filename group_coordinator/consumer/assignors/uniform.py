"""The uniform assignor: counts that differ by one at most, and as few moves as that allows.

When all members subscribe to the same topics, quotas are known from the start: every member keeps what it has up to its
quota, and what is free fills those below theirs. Other groups are balanced topic by topic (`mixed.py`).
"""

from collections.abc import Container

from ottla.group_coordinator.consumer.assignors.mixed import assign_mixed
from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, Partitions
from ottla.wire.uuids import Uuid


def assign_uniform(group: GroupSpec) -> dict[str, Partitions]:
    """Balance first, stickiness second."""
    if not group.members:
        return {}
    if not group.homogeneous:
        return assign_mixed(group)
    topic_ids = next(iter(group.members.values())).topic_ids
    return _assign_homogeneous(group, topic_ids) if topic_ids else {}


def _assign_homogeneous(group: GroupSpec, topic_ids: frozenset[Uuid]) -> dict[str, Partitions]:
    taken: dict[Uuid, set[int]] = {topic_id: set() for topic_id in topic_ids}
    for member in group.members.values():
        for topic_id, partitions in member.assigned.items():
            if topic_id in taken:
                taken[topic_id] |= partitions
    free = [
        (topic_id, partition)
        for topic_id in sorted(topic_ids)
        for partition in range(group.partition_counts[topic_id])
        if partition not in taken[topic_id]
    ]
    total = sum(group.partition_counts[topic_id] for topic_id in topic_ids)
    quota, extras = divmod(total, len(group.members))

    result: dict[str, Partitions] = {}
    wanted: list[tuple[str, int]] = []
    for index, (member_id, member) in enumerate(group.members.items()):
        room = quota + (extras > 0)
        kept = member.assigned
        size = sum(map(len, kept.values()))
        if size <= room and taken.keys() >= kept.keys():
            room -= size  # as it is, which costs nothing: most members of a large group lose nothing
        else:
            kept, room = _keep(kept, taken, room, free)
        takes_extra = extras > 0
        if takes_extra and room and len(group.members) - index > extras:
            # It lacks something anyway: the extra partition is left to a member that has one already,
            # as long as enough members follow to take all of them.
            room -= 1
            takes_extra = False
        extras -= takes_extra
        result[member_id] = kept
        if room:
            wanted.append((member_id, room))

    position = 0
    for member_id, room in wanted:
        result[member_id] = _with_more(result[member_id], free[position : position + room])
        position += room
    return result


def _keep(
    assigned: Partitions, topic_ids: Container[Uuid], room: int, free: list[tuple[Uuid, int]]
) -> tuple[Partitions, int]:
    """What a member keeps of its partitions, and the room that is left; what it loses becomes free."""
    kept: dict[Uuid, frozenset[int]] = {}
    for topic_id, partitions in assigned.items():
        if topic_id not in topic_ids:
            continue
        ordered = sorted(partitions)
        if ordered[:room]:
            kept[topic_id] = frozenset(ordered[:room])
        free.extend((topic_id, partition) for partition in ordered[room:])
        room -= min(room, len(ordered))
    return kept, room


def _with_more(assigned: Partitions, more: list[tuple[Uuid, int]]) -> Partitions:
    added: dict[Uuid, set[int]] = {}
    last: Uuid | None = None  # mostly the same again
    for topic_id, partition in more:
        if topic_id != last:
            last = topic_id
            of_topic = added.setdefault(topic_id, set())
        of_topic.add(partition)
    grown = dict(assigned)
    for topic_id, partitions in added.items():
        grown[topic_id] = grown.get(topic_id, frozenset()) | partitions
    return grown
