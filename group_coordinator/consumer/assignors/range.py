"""The range assignor: each subscriber of a topic gets one run of neighbouring partitions.

Members are in order of instance id, those without one after them by member id. So topics with the same subscribers and
partition counts are co-partitioned, and a static member keeps its ranges under a new member id. It looks at no earlier
assignment.
"""

from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, MemberSpec, Partitions
from ottla.wire.uuids import Uuid


def assign_range(group: GroupSpec) -> dict[str, Partitions]:
    """Cut every topic into as many ranges as it has subscribers; the first ones get what does not divide."""
    members = sorted(group.members.items(), key=_order)
    subscribers: dict[Uuid, int] = {}
    for _, member in members:
        for topic_id in member.topic_ids:
            subscribers[topic_id] = subscribers.get(topic_id, 0) + 1
    ranks = dict.fromkeys(subscribers, 0)
    result: dict[str, Partitions] = {}
    for member_id, member in members:
        assigned: dict[Uuid, frozenset[int]] = {}
        for topic_id in member.topic_ids:
            rank = ranks[topic_id]
            ranks[topic_id] += 1
            size, extra = divmod(group.partition_counts[topic_id], subscribers[topic_id])
            start = rank * size + min(rank, extra)
            end = start + size + (rank < extra)
            if start < end:
                assigned[topic_id] = frozenset(range(start, end))
        result[member_id] = assigned
    return result


def _order(entry: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = entry
    if member.instance_id is None:
        return True, member_id
    return False, member.instance_id
