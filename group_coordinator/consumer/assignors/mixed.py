"""The uniform assignor for members that subscribe to different topics.

Members keep what they still subscribe to. Free partitions go, topic by topic, to the least loaded subscriber;
topics with the most partitions per subscriber come first, because the others can still even them out. Then
partitions move from the most to the least loaded subscribers of each topic until every topic is balanced or
`_MAX_ROUNDS` are over.
"""

from typing import Final

from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, Partitions
from ottla.wire.uuids import Uuid

_MAX_ROUNDS: Final = 16  # overlapping subscriptions converge slowly; each round about halves the imbalance
_FREE: Final = -1


class _Loads:
    """The subscribers of one topic in order of load, with the next to receive and the next to give.

    Both ends work in levels: all members of the lowest level receive once before the level rises, all of the
    highest give once before it sinks. Members at the high end that own nothing of the topic are put aside.
    """

    __slots__ = (
        "_high_end",
        "_high_next",
        "_high_start",
        "_low_end",
        "_low_next",
        "_members",
        "_sizes",
        "high",
        "low",
    )

    def __init__(self, subscribers: list[int], sizes: list[int]) -> None:
        self._sizes = sizes
        self._members = sorted(subscribers, key=lambda member: (sizes[member], member))
        self._low_end = 0
        self._low_next = 0
        self._high_start = self._high_end = len(self._members)
        self._high_next = self._high_end - 1
        self.low = sizes[self._members[0]] - 1
        self.high = sizes[self._members[-1]] + 1

    @property
    def spread(self) -> int:
        """How far the most loaded is above the least loaded at the start."""
        return self._sizes[self._members[-1]] - self._sizes[self._members[0]]

    @property
    def balanced(self) -> bool:
        """Would another move not help?"""
        return self.high - self.low <= 1

    def next_receiver(self) -> int:
        """The least loaded member."""
        if self._low_next >= self._low_end:
            self.low += 1
            while self._low_end < len(self._members) and self._size_at(self._low_end) == self.low:
                self._low_end += 1
            self._low_next = 0
        self._low_next += 1
        return self._members[self._low_next - 1]

    def next_giver(self) -> int | None:
        """The most loaded member that was not put aside."""
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self.high = self._size_at(self._high_start - 1)  # all of the level were put aside
            else:
                self.high -= 1
            while self._high_start > 0 and self._size_at(self._high_start - 1) == self.high:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        self._high_next -= 1
        return self._members[self._high_next + 1]

    def put_aside(self) -> None:
        """Leave the last giver out from here on: it has nothing to give."""
        members, place, last = self._members, self._high_next + 1, self._high_end - 1
        members[place], members[last] = members[last], members[place]
        self._high_end = last

    def _size_at(self, position: int) -> int:
        return self._sizes[self._members[position]]


class _Balance:
    """The assignment while it is made: the owner of each partition and the load of each member."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._member_ids = list(group.members)
        self._sizes = [0] * len(self._member_ids)
        self._subscribers: dict[Uuid, list[int]] = {}
        for index, member in enumerate(group.members.values()):
            for topic_id in member.topic_ids:
                self._subscribers.setdefault(topic_id, []).append(index)
        self._owners = {
            topic_id: [_FREE] * group.partition_counts[topic_id] for topic_id in self._subscribers
        }
        self._topic_ids = sorted(self._subscribers, key=self._topic_order)

    def _topic_order(self, topic_id: Uuid) -> tuple[float, int, Uuid]:
        subscribers = len(self._subscribers[topic_id])
        return -self._group.partition_counts[topic_id] / subscribers, subscribers, topic_id

    def keep(self) -> None:
        """Members keep what they have of topics they still subscribe to."""
        for index, member in enumerate(self._group.members.values()):
            for topic_id, partitions in member.assigned.items():
                if topic_id in member.topic_ids:
                    self._sizes[index] += len(partitions)
                    for partition in partitions:
                        self._owners[topic_id][partition] = index

    def fill(self) -> None:
        """Free partitions go to the least loaded subscribers."""
        for topic_id in self._topic_ids:
            owners = self._owners[topic_id]
            free = [partition for partition, owner in enumerate(owners) if owner == _FREE]
            if not free:
                continue
            loads = _Loads(self._subscribers[topic_id], self._sizes)
            for partition in free:
                owners[partition] = receiver = loads.next_receiver()
                self._sizes[receiver] += 1

    def even_out(self) -> None:
        """Round after round over the topics that more than one member reads, until a whole round moves nothing."""
        topic_ids = [topic_id for topic_id in self._topic_ids if len(self._subscribers[topic_id]) > 1]
        last_moved = None
        for _ in range(_MAX_ROUNDS):
            for topic_id in topic_ids:
                if topic_id == last_moved:
                    return
                if self._even_out_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _even_out_topic(self, topic_id: Uuid) -> bool:
        loads = _Loads(self._subscribers[topic_id], self._sizes)
        if loads.spread <= 1:
            return False
        owners = self._owners[topic_id]
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            owned.setdefault(owner, []).append(partition)
        moved = False
        while not loads.balanced:
            giver = loads.next_giver()
            while giver is not None and not owned.get(giver):
                loads.put_aside()
                giver = loads.next_giver()
            if giver is None:
                break
            partition = owned[giver].pop()
            receiver = loads.next_receiver()
            if loads.balanced:
                break
            owners[partition] = receiver
            self._sizes[giver] -= 1
            self._sizes[receiver] += 1
            moved = True
        return moved

    def result(self) -> dict[str, Partitions]:
        """The owners turned around."""
        assigned: list[dict[Uuid, set[int]]] = [{} for _ in self._member_ids]
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                assigned[owner].setdefault(topic_id, set()).add(partition)
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
            for member_id, topics in zip(self._member_ids, assigned, strict=True)
        }


def assign_mixed(group: GroupSpec) -> dict[str, Partitions]:
    """Keep, fill, even out."""
    if not any(member.topic_ids for member in group.members.values()):
        return {}
    balance = _Balance(group)
    balance.keep()
    balance.fill()
    balance.even_out()
    return balance.result()
