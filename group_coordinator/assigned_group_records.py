"""Records that consumer groups and share groups have in common but for their types: epochs, targets, tombstones.

Both have an epoch that asks for a new assignment, a target assignment in an epoch of its own, and members of three
records each: what the member is, what it shall have, and what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.records import CoordinatorRecord, tombstone
from ottla.wire.dataclass import dataclass
from ottla.wire.schema import Message

Make = Callable[..., Message]


@dataclass(frozen=True, slots=True)
class AssignedGroupRecords:
    """The classes of one kind of group, and the records made of them."""

    group_key: Make
    group_value: Make
    member_key: Make
    target_epoch_key: Make
    target_epoch_value: Make
    target_key: Make
    target_value: Make
    current_key: Make
    topic_partition: Callable[..., Any]

    def group_epoch(self, group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
        """The group reaches an epoch with topics of this hash."""
        return CoordinatorRecord(
            self.group_key(group_id=group_id), self.group_value(epoch=epoch, metadata_hash=metadata_hash)
        )

    def target_epoch(self, group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
        """The target assignment of an epoch is complete."""
        return CoordinatorRecord(
            self.target_epoch_key(group_id=group_id),
            self.target_epoch_value(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
        )

    def target_of_member(self, group_id: str, member_id: str, target: Partitions) -> CoordinatorRecord:
        """What a member shall have."""
        return CoordinatorRecord(
            self.target_key(group_id=group_id, member_id=member_id),
            self.target_value(
                topic_partitions=[
                    self.topic_partition(topic_id=topic_id, partitions=sorted(target[topic_id]))
                    for topic_id in sorted(target)
                ]
            ),
        )

    def member_tombstones(self, group_id: str, member_id: str) -> list[CoordinatorRecord]:
        """Remove a member: what it has, what it shall have, what it is. The order matters to Kafka's replay."""
        keys = (self.current_key, self.target_key, self.member_key)
        return [tombstone(key(group_id=group_id, member_id=member_id)) for key in keys]

    def group_tombstones(
        self, group_id: str, member_ids: Iterable[str], *others: Message
    ) -> list[CoordinatorRecord]:
        """Remove a group with its members and the keys of what else it has. The order matters here too."""
        members = list(member_ids)

        def of_members(key: Make) -> list[CoordinatorRecord]:
            return [tombstone(key(group_id=group_id, member_id=each)) for each in members]

        return [
            *of_members(self.current_key),
            *of_members(self.target_key),
            tombstone(self.target_epoch_key(group_id=group_id)),
            *of_members(self.member_key),
            *map(tombstone, others),
            tombstone(self.group_key(group_id=group_id)),
        ]
