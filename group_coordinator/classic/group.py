"""A classic group: its states, its members, and the questions others ask of it.

What is in the log is `persisted`; everything else is what the members are doing just now, and after a restart they do
it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar

from ottla.group_coordinator.classic.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from ottla.group_coordinator.group import Committer
from ottla.group_coordinator.records import CoordinatorRecord, tombstone
from ottla.group_coordinator.records.classic_group import GroupMetadataKey, GroupMetadataValue
from ottla.group_coordinator.records.offsets import OffsetCommitValue
from ottla.wire.dataclass import dataclass, field
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.join_group import JoinGroupRequestProtocol


class GroupState(StrEnum):
    """Named as clients are told."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


TRANSITIONS: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.STABLE, GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE}),
}
"""Where a group can go from each state."""


@dataclass(slots=True)
class ClassicMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: list[JoinGroupRequestProtocol]
    assignment: bytes = b""
    join_waiter: int | None = None
    sync_waiter: int | None = None
    is_new: bool = False
    """Has not been in a generation yet."""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def satisfies_heartbeat(self) -> bool:
        """A parked member cannot send heartbeats, unless it is so new that it may have gone unnoticed."""
        return not self.is_new and (self.join_waiter is not None or self.sync_waiter is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        return b""

    def vote(self, candidates: set[str]) -> str:
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)


@dataclass(slots=True)
class ClassicGroup:
    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.EMPTY
    state_timestamp_ms: int = -1
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    protocol_counts: Counter[str] = field(default_factory=Counter)
    """How many members support each protocol."""
    pending_join: set[str] = field(default_factory=set)
    """Ids that were given out and have not come back."""
    pending_sync: set[str] = field(default_factory=set)
    topics: frozenset[str] | None = None
    """What the members subscribe to; None when that is not known."""
    new_member_added: bool = False
    initial_delay_ms: int | None = None
    """The running delay of a new group's first rebalance, and how much longer it may become."""
    initial_remaining_ms: int = 0
    persisted: GroupMetadataValue | None = None
    """The group's record in the log; it only changes when a record is applied."""
    written: GroupMetadataValue | None = None
    """The record this group itself wrote last, which therefore tells it no news when it is applied."""

    TYPE: ClassVar[str] = "classic"

    # State -------------------------------------------------------------------------------------------------

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"group {self.group_id} cannot go from {self.state} to {state}")
        self.previous_state, self.state, self.state_timestamp_ms = self.state, state, now_ms

    @property
    def can_rebalance(self) -> bool:
        return GroupState.PREPARING_REBALANCE in TRANSITIONS[self.state]

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    # Members -----------------------------------------------------------------------------------------------

    def add(self, member: ClassicMember) -> None:
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.protocol_counts.update(protocol.name for protocol in member.protocols)
        self.pending_join.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.protocol_counts.subtract(protocol.name for protocol in member.protocols)
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)

    def replace_static(self, member: ClassicMember, new_member_id: str) -> None:
        """The instance came back under a new id: it is the same member, leader too if it was."""
        assert member.group_instance_id is not None
        old_member_id = member.member_id
        del self.members[old_member_id]
        self.pending_sync.discard(old_member_id)
        member.member_id = new_member_id
        self.members[new_member_id] = member
        self.static_members[member.group_instance_id] = new_member_id
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id

    def set_protocols(self, member: ClassicMember, protocols: list[JoinGroupRequestProtocol]) -> None:
        self.protocol_counts.subtract(protocol.name for protocol in member.protocols)
        member.protocols = protocols
        self.protocol_counts.update(protocol.name for protocol in protocols)

    def check_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """The member, or KafkaError: unknown, or fenced because its instance has another id now."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    @property
    def awaiting_join(self) -> int:
        return sum(member.join_waiter is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        return not self.pending_join and all(
            member.join_waiter is not None for member in self.members.values()
        )

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Protocols ---------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Iterable[JoinGroupRequestProtocol]) -> bool:
        """Whether a member with these protocols can be in the group."""
        names = {protocol.name for protocol in protocols}
        if self.is_empty:
            return bool(protocol_type and names)
        size = len(self.members)
        return protocol_type == self.protocol_type and any(
            self.protocol_counts[name] == size for name in names
        )

    def select_protocol(self) -> str:
        """What all members support and most of them like best."""
        size = len(self.members)
        candidates = {name for name, count in self.protocol_counts.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def update_topics(self) -> None:
        if not self.uses_consumer_protocol:
            self.topics = None
        elif not self.members:
            self.topics = frozenset()
        else:
            self.topics = subscribed_topics(
                member.metadata(self.protocol_name) for member in self.members.values()
            )

    # What offsets and admins ask ---------------------------------------------------------------------------

    def is_subscribed_to(self, topic: str) -> bool:
        return self.uses_consumer_protocol if self.topics is None else topic in self.topics

    def check_offset_commit(self, committer: Committer) -> None:
        if committer.generation_id < 0 and self.is_empty:
            return
        if committer.generation_id >= 0 or committer.member_id or committer.group_instance_id is not None:
            self.check_member(committer.member_id, committer.group_instance_id)
            if committer.generation_id != self.generation_id:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not committer.is_transactional and not self.is_empty:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not committer.is_transactional and self.state is GroupState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may ask how far a classic group is."""

    def check_offset_delete(self) -> None:
        if not self.is_empty and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def offset_expires_from_ms(self, offset: OffsetCommitValue) -> int | None:
        """When the retention of an offset begins; None while it may not expire."""
        if self.protocol_type is None:
            return offset.commit_timestamp
        if self.is_empty:
            return self.state_timestamp_ms if self.state_timestamp_ms != -1 else offset.commit_timestamp
        if self.uses_consumer_protocol and self.topics is not None and self.state is GroupState.STABLE:
            return offset.commit_timestamp
        return None

    @property
    def listed_protocol_type(self) -> str:
        return self.protocol_type or ""

    def tombstones(self) -> list[CoordinatorRecord]:
        return [tombstone(GroupMetadataKey(self.group_id))]
