"""A share group and its members: hard state that replay restores, with the counts that follow from the members.

Only `replay` changes it. `refresh_deadline`, when the topics of the group must be looked at again, is soft.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.state import REFRESH_NOW
from ottla.group_coordinator.group import Committer, PartitionCheck
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.records.offsets import OffsetCommitValue
from ottla.group_coordinator.share.new_records import group_tombstones
from ottla.wire.dataclass import dataclass, field
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import Uuid

NO_PARTITIONS: Final[Partitions] = {}


@dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """Who it is, what it subscribes to, and what it is assigned: a value that is replaced, never changed."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: Partitions = field(default_factory=dict)


class TopicState(NamedTuple):
    """Partitions of a topic whose state is being initialised since `since_ms`, or is initialised."""

    name: str
    partitions: frozenset[int]
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class StateMetadata:
    """Which share partitions of a group have a state in `__share_group_state`."""

    initializing: Mapping[Uuid, TopicState] = field(default_factory=dict)
    initialized: Mapping[Uuid, TopicState] = field(default_factory=dict)
    deleting: Mapping[Uuid, str] = field(default_factory=dict)

    @property
    def initialized_partitions(self) -> dict[Uuid, frozenset[int]]:
        return {topic_id: topic.partitions for topic_id, topic in self.initialized.items()}

    @property
    def all_partitions(self) -> dict[Uuid, frozenset[int]]:
        """Those whose state is there or may be."""
        found = self.initialized_partitions
        for topic_id, topic in self.initializing.items():
            found[topic_id] = found.get(topic_id, frozenset()) | topic.partitions
        return found


class ShareGroup:
    """The groups of KIP-932. Members, target and epochs are read freely and written by `replay`."""

    TYPE: ClassVar[str] = "share"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ShareGroupMember] = {}
        self.target: dict[str, Partitions] = {}
        self.state_metadata = StateMetadata()
        self.name_counts: Counter[str] = Counter()
        self.refresh_deadline = REFRESH_NOW

    @property
    def is_empty(self) -> bool:
        """Without members."""
        return not self.members

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def listed_protocol_type(self) -> str:
        return "share"

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.name_counts

    def member(self, member_id: str) -> ShareGroupMember:
        """The member of this id; UNKNOWN_MEMBER_ID when there is none."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def needs_refresh(self, now_ms: int) -> bool:
        """Must the topics be looked at again?"""
        return now_ms >= self.refresh_deadline.at_ms or self.group_epoch < self.refresh_deadline.epoch

    # What offsets and admins ask ---------------------------------------------------------------------------

    def check_offset_commit(self, committer: Committer) -> PartitionCheck | None:
        """Offsets of share groups are not committed."""
        raise self._not_a_consumer_group()

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise self._not_a_consumer_group()

    def check_offset_delete(self) -> None:
        raise self._not_a_consumer_group()

    def check_delete(self) -> None:
        """NON_EMPTY_GROUP while it has members."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def offset_expires_from_ms(self, offset: OffsetCommitValue) -> int | None:
        """Share groups stay until they are deleted."""
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group."""
        return group_tombstones(self.group_id, self.members)

    def _not_a_consumer_group(self) -> KafkaError:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    # How replay changes it ---------------------------------------------------------------------------------

    def put_member(self, member: ShareGroupMember) -> None:
        """Add a member or replace it."""
        self._count(self.members.get(member.member_id), -1)
        self.members[member.member_id] = member
        self._count(member, +1)

    def remove_member(self, member_id: str) -> None:
        """Forget a member."""
        self._count(self.members.pop(member_id, None), -1)

    def _count(self, member: ShareGroupMember | None, step: int) -> None:
        if member is not None:
            for name in member.topic_names:
                self.name_counts[name] += step
                if not self.name_counts[name]:
                    del self.name_counts[name]
