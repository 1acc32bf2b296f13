"""Offsets that were committed in transactions which have not ended, by group, topic, partition and producer id.

A commit marker makes them count, an abort marker forgets them. Whichever record of a partition came last in the log
counts: an offset that was overtaken by a later record while its transaction was open counts no more, but its partition
stays unstable until the marker (KIP-447). Removing an offset removes what is pending for it as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.group_coordinator.records.offsets import OffsetCommitKey, OffsetCommitValue
from ottla.log_store.checkpoints import TopicPartition


class PendingOffset(NamedTuple):
    """`value` is None once a later record has overtaken it."""

    record_offset: int
    value: OffsetCommitValue | None


class PendingOffsets:
    """Pending offsets of a shard; no level is ever left empty."""

    __slots__ = ("_groups", "_keys_of")

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, dict[int, PendingOffset]]] = {}
        self._keys_of: dict[int, set[tuple[str, TopicPartition]]] = {}  # by producer id

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(
        self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue, record_offset: int
    ) -> None:
        """A transactional record was written."""
        partition = (key.topic, key.partition)
        producers = self._groups.setdefault(key.group, {}).setdefault(partition, {})
        producers[producer_id] = PendingOffset(record_offset, value)
        self._keys_of.setdefault(producer_id, set()).add((key.group, partition))

    def overtake(self, group: str, partition: TopicPartition, record_offset: int | None = None) -> None:
        """A record that counts was written for the partition at `record_offset`, or after all others: what came before
        it does not count any more."""
        producers = self._groups.get(group, {}).get(partition, {})
        for producer_id, pending in producers.items():
            if record_offset is None or pending.record_offset < record_offset:
                producers[producer_id] = PendingOffset(pending.record_offset, None)

    def discard(self, key: OffsetCommitKey) -> None:
        """The offset was removed."""
        partition = (key.topic, key.partition)
        for producer_id in list(self._groups.get(key.group, {}).get(partition, {})):
            self._pop(producer_id, key.group, partition)

    def end(self, producer_id: int) -> list[tuple[str, TopicPartition, PendingOffset]]:
        """The transaction of a producer has ended; returns what was pending in which group. There may be very much of
        it, which is settled in one go."""
        ended = []
        for group, partition in self._keys_of.pop(producer_id, ()):
            partitions = self._groups[group]
            producers = partitions[partition]
            ended.append((group, partition, producers.pop(producer_id)))
            if not producers:
                del partitions[partition]
                if not partitions:
                    del self._groups[group]
        return ended

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        return (topic, partition) in self._groups.get(group_id, {})

    def of_group(self, group_id: str) -> list[TopicPartition]:
        """The partitions of a group with a pending offset."""
        return list(self._groups.get(group_id, {}))

    def has_group(self, group_id: str) -> bool:
        return group_id in self._groups

    def __iter__(self) -> Iterator[tuple[OffsetCommitKey, PendingOffset]]:
        for group_id, partitions in self._groups.items():
            for (topic, partition), producers in partitions.items():
                for pending in producers.values():
                    yield OffsetCommitKey(group_id, topic, partition), pending

    def _pop(self, producer_id: int, group_id: str, partition: TopicPartition) -> PendingOffset:
        partitions = self._groups[group_id]
        pending = partitions[partition].pop(producer_id)
        if not partitions[partition]:
            del partitions[partition]
        if not partitions:
            del self._groups[group_id]
        keys = self._keys_of[producer_id]
        keys.discard((group_id, partition))
        if not keys:
            del self._keys_of[producer_id]
        return pending
