"""A member of a consumer group: a value that is replaced, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from ottla.wire.dataclass import dataclass, field
from ottla.wire.uuids import Uuid

LEAVE_EPOCH: Final = -1
"""A member sends it to leave for good."""

LEAVE_STATIC_EPOCH: Final = -2
"""A static member sends it to leave and come back; it is also the epoch of a static member that is away."""

Held = Mapping[Uuid, Mapping[int, int]]
"""Partitions that a member holds: by topic id and partition, the epoch in which it got the partition."""

NOTHING: Final[Held] = {}


class MemberState(IntEnum):
    """How far a member is on its way to the target; the numbers are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has to give up partitions, and stays in its epoch until it did."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others still hold."""
    UNKNOWN = 127
    """A newer broker wrote a state that Kafka 4.3 does not have."""

    @classmethod
    def of(cls, number: int) -> MemberState:
        """The state of this number, UNKNOWN for any other."""
        return cls(number) if number in cls._value2member_map_ else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """What is kept of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Names of its assignors and the subscription it sent with each, in its order of preference."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """Who it is, what it subscribes to, and what it holds."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: Held = field(default_factory=dict)
    pending_revocation: Held = field(default_factory=dict)
    classic: ClassicMember | None = None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Does it hold its whole part of that assignment?"""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    @property
    def uses_classic_protocol(self) -> bool:
        """Does it speak JoinGroup and SyncGroup instead of ConsumerGroupHeartbeat?"""
        return self.classic is not None
