"""The committed offsets of a shard's groups, by group, topic and partition.

What is kept for an offset is the value of its record in the log. The store only changes when a record or the end of a
transaction is applied; the functions beside it say which records a commit, a deletion or an expiry needs.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.group_coordinator.group import Group
from ottla.group_coordinator.pending_offsets import PendingOffsets
from ottla.group_coordinator.records import CoordinatorRecord, tombstone
from ottla.group_coordinator.records.offsets import OffsetCommitKey, OffsetCommitValue
from ottla.group_coordinator.topics import Topics
from ottla.wire.uuids import ZERO_UUID

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1


class Offsets:
    """Offsets by group, topic and partition; no level is ever left empty."""

    def __init__(self) -> None:
        self.pending = PendingOffsets()
        self._groups: dict[str, dict[str, dict[int, OffsetCommitValue]]] = {}

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        """Take in a record that belongs to no transaction."""
        if value is not None:
            if self.pending:
                self.pending.overtake(key.group, (key.topic, key.partition))
            self._put(key, value)
            return
        if self.pending:
            self.pending.discard(key)
        topics = self._groups.get(key.group, {})
        partitions = topics.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            topics.pop(key.topic, None)
        if not topics:
            self._groups.pop(key.group, None)

    def _put(self, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        self._groups.setdefault(key.group, {}).setdefault(key.topic, {})[key.partition] = value

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Take in a marker."""
        ended = self.pending.end(producer_id)
        if not committed:
            return
        partitions: dict[int, OffsetCommitValue] = {}
        of_which: tuple[str, str] | None = None  # they are these, as they are of most
        for group, name, pending in ended:
            if pending.value is None:
                continue
            topic, partition = name
            if (group, topic) != of_which:
                of_which = group, topic
                partitions = self._groups.setdefault(group, {}).setdefault(topic, {})
            partitions[partition] = pending.value
            if self.pending:
                self.pending.overtake(group, name, pending.record_offset)

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommitValue | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> dict[str, dict[int, OffsetCommitValue]]:
        """Topic to partition to offset; not to be changed."""
        return self._groups.get(group_id, {})

    def __iter__(self) -> Iterator[tuple[OffsetCommitKey, OffsetCommitValue]]:
        for group_id, topics in self._groups.items():
            for topic, partitions in topics.items():
                for partition, value in partitions.items():
                    yield OffsetCommitKey(group_id, topic, partition), value

    # Records that remove offsets ---------------------------------------------------------------------------

    def delete_group(self, group_id: str) -> list[CoordinatorRecord]:
        records = [
            tombstone(OffsetCommitKey(group_id, topic, partition))
            for topic, partitions in self.of_group(group_id).items()
            for partition in partitions
        ]
        return records + [
            tombstone(OffsetCommitKey(group_id, topic, partition))
            for topic, partition in self.pending.of_group(group_id)
            if self.get(group_id, topic, partition) is None
        ]

    def has_topics(self, names: frozenset[str]) -> bool:
        """Whether there is anything of these topics."""
        return next(self.delete_topics(names), None) is not None

    def delete_topics(self, names: frozenset[str]) -> Iterator[CoordinatorRecord]:
        """Topics were deleted."""
        for group_id, topics in self._groups.items():
            for topic in names & topics.keys():
                for partition in topics[topic]:
                    yield tombstone(OffsetCommitKey(group_id, topic, partition))
        for key, _ in self.pending:
            if key.topic in names:
                yield tombstone(key)

    def delete_orphans(self, topics: Topics) -> list[CoordinatorRecord]:
        """Topics were deleted while nobody looked: those that are gone, or others of the same name."""
        records = [tombstone(key) for key, value in self if not _exists(topics, key.topic, value)]
        return records + [tombstone(key) for key, _ in self.pending if topics.by_name(key.topic) is None]

    def expire(
        self, group_id: str, group: Group, now_ms: int, retention_ms: int
    ) -> tuple[list[CoordinatorRecord], bool]:
        """Which offsets of a group have expired, and whether that is all it has."""
        records: list[CoordinatorRecord] = []
        count = 0
        for topic, partitions in self.of_group(group_id).items():
            count += len(partitions)
            if not group.is_subscribed_to(topic):
                records += [
                    tombstone(OffsetCommitKey(group_id, topic, partition))
                    for partition, value in partitions.items()
                    if _is_expired(group, value, now_ms, retention_ms)
                    and not self.pending.has(group_id, topic, partition)
                ]
        return records, len(records) == count and not self.pending.has_group(group_id)


def _exists(topics: Topics, name: str, value: OffsetCommitValue) -> bool:
    topic = topics.by_name(name)
    return topic is not None and value.topic_id in (ZERO_UUID, topic.topic_id)


def _is_expired(group: Group, value: OffsetCommitValue, now_ms: int, retention_ms: int) -> bool:
    since_ms = group.offset_expires_from_ms(value)
    if since_ms is None:
        return False
    if value.expire_timestamp != NO_TIMESTAMP:
        return now_ms >= value.expire_timestamp
    return now_ms - since_ms >= retention_ms
