"""A consumer group: hard state that replay restores, with the counts and indexes that follow from its members.

Only `replay` changes it. Soft are `refresh_deadline`, when the topics of the group must be looked at again, and
`told_to_join`, the members of the classic protocol that a timer waits for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, NamedTuple

from ottla.group_coordinator.consumer import offset_rules
from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.member import ConsumerGroupMember, Held, MemberState
from ottla.group_coordinator.consumer.new_records import group_tombstones
from ottla.group_coordinator.consumer.resolved import ResolvedRegex
from ottla.group_coordinator.group import Committer, PartitionCheck
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.records.offsets import OffsetCommitValue
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import Uuid

EMPTY_TARGET: Final[Partitions] = {}


class RefreshDeadline(NamedTuple):
    """Topics are looked at again at this time, or when the group did not reach this epoch: the append failed."""

    at_ms: int
    epoch: int


REFRESH_NOW: Final = RefreshDeadline(0, 0)


class ConsumerGroup:
    """The groups of KIP-848. Members, target and epochs are read freely and written by `replay`."""

    TYPE: ClassVar[str] = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerGroupMember] = {}
        self.target: dict[str, Partitions] = {}
        self.static_members: dict[str, str] = {}
        self.resolved_regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata_record = False
        """Kafka before 4.1 wrote one; it is removed with the next change."""

        self.regex_counts: Counter[str] = Counter()
        self.name_counts: Counter[str] = Counter()
        self.server_assignors: Counter[str] = Counter()
        self.classic_protocols: Counter[str] = Counter()
        self.classic_member_count = 0
        self._partition_epochs: dict[Uuid, dict[int, int]] = {}

        self.refresh_deadline = REFRESH_NOW
        self.told_to_join: set[str] = set()

    # What the group is -------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Without members."""
        return not self.members

    @property
    def state_name(self) -> str:
        """As ListGroups and ConsumerGroupDescribe name it."""
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        reconciled = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return "Stable" if reconciled else "Reconciling"

    def is_subscribed_to(self, topic: str) -> bool:
        """Does a member read this topic, by its name or by a regular expression?"""
        return topic in self.name_counts or any(
            topic in regex.topics for regex in self.resolved_regexes.values()
        )

    @property
    def listed_protocol_type(self) -> str:
        """What ListGroups says of it."""
        return "consumer"

    def member(self, member_id: str) -> ConsumerGroupMember:
        """The member of this id; UNKNOWN_MEMBER_ID when there is none."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """Who has this instance id."""
        if instance_id is None:
            return None
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str, instance_id: str | None = None) -> Partitions:
        """The target of a member; a static member that just came back finds that of its predecessor."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.target.get(member_id, EMPTY_TARGET)

    def holders(self, topic_id: Uuid) -> Mapping[int, int]:
        """The epochs of members that hold partitions of a topic, or have still to give them up; not to be changed."""
        return self._partition_epochs.get(topic_id, {})

    def is_waiting_for_others(self, member: ConsumerGroupMember) -> bool:
        """Does another member still hold something of this one's target?"""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            partition not in member.assigned.get(topic_id, {}) and partition in self.holders(topic_id)
            for topic_id, partitions in self.target_of(member.member_id).items()
            for partition in partitions
        )

    def preferred_assignor(
        self, old: ConsumerGroupMember | None = None, new: ConsumerGroupMember | None = None
    ) -> str | None:
        """What most members ask for, as it will be when `new` takes the place of `old`."""
        counts = Counter(self.server_assignors)
        _count(counts, _one(None if old is None else old.server_assignor), -1)
        _count(counts, _one(None if new is None else new.server_assignor), +1)
        return max(counts, key=counts.__getitem__, default=None)

    def needs_refresh(self, now_ms: int) -> bool:
        """Must the topics be looked at again?"""
        return now_ms >= self.refresh_deadline.at_ms or self.group_epoch < self.refresh_deadline.epoch

    # What offsets and admins ask ---------------------------------------------------------------------------

    def check_offset_commit(self, committer: Committer) -> PartitionCheck | None:
        """KafkaError, or a check of each partition when there is one to make."""
        return offset_rules.check_commit(self, committer)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """KafkaError when this member may not know the offsets."""
        offset_rules.check_fetch(self, member_id, member_epoch)

    def check_offset_delete(self) -> None:
        """Offsets of topics that nobody subscribes to may always be deleted."""

    def check_delete(self) -> None:
        """NON_EMPTY_GROUP while it has members."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def offset_expires_from_ms(self, offset: OffsetCommitValue) -> int | None:
        """From when it was committed; offsets of topics that are subscribed to do not expire at all."""
        return offset.commit_timestamp

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group, but not its offsets."""
        return group_tombstones(self)

    # How replay changes it ---------------------------------------------------------------------------------

    def put_member(self, member: ConsumerGroupMember) -> None:
        """Add a member or replace it."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count_member(old, -1)
        self._count_member(member, +1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if old is not None:
            self._release(old.assigned, old.member_epoch)
            self._release(old.pending_revocation, old.member_epoch)
        self._hold(member.assigned, member.member_epoch)
        self._hold(member.pending_revocation, member.member_epoch)

    def remove_member(self, member_id: str) -> None:
        """Forget a member."""
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self.told_to_join.discard(member_id)
        self._count_member(member, -1)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]
        self._release(member.assigned, member.member_epoch)
        self._release(member.pending_revocation, member.member_epoch)

    def _count_member(self, member: ConsumerGroupMember | None, step: int) -> None:
        if member is None:
            return
        _count(self.name_counts, member.topic_names, step)
        _count(self.regex_counts, _one(member.topic_regex), step)
        _count(self.server_assignors, _one(member.server_assignor), step)
        if member.classic is not None:
            self.classic_member_count += step
            _count(self.classic_protocols, (name for name, _ in member.classic.protocols), step)

    def _hold(self, held: Held, epoch: int) -> None:
        for topic_id, partitions in held.items():
            epochs = self._partition_epochs.get(topic_id)
            if epochs is None:
                self._partition_epochs[topic_id] = dict.fromkeys(partitions, epoch)
                continue
            for partition in partitions:
                # An older member's record that is still to be replaced does not win over a newer one.
                if epochs.get(partition, epoch) <= epoch:
                    epochs[partition] = epoch

    def _release(self, held: Held, epoch: int) -> None:
        for topic_id, partitions in held.items():
            epochs = self._partition_epochs.get(topic_id, {})
            for partition in partitions:
                if epochs.get(partition) == epoch:
                    del epochs[partition]
            if not epochs:
                self._partition_epochs.pop(topic_id, None)


def is_homogeneous(
    regex_counts: Mapping[str, int], name_counts: Mapping[str, int], member_count: int
) -> bool:
    """Do all members subscribe to the same topics: all by the same names, or all by one regular expression?"""
    if regex_counts:
        return not name_counts and next(iter(regex_counts.values())) == member_count
    return all(count == member_count for count in name_counts.values())


def _one(text: str | None) -> tuple[str, ...]:
    return (text,) if text else ()


def _count(counts: Counter[str], names: Iterable[str], step: int) -> None:
    for name in names:
        counts[name] += step
        if not counts[name]:
            del counts[name]
