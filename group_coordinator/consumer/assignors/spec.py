"""What an assignor gets and gives."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from ottla.wire.dataclass import dataclass
from ottla.wire.uuids import Uuid

Partitions = Mapping[Uuid, frozenset[int]]
"""Partition numbers by topic id; a topic without partitions is left out."""


NOTHING: Final[Partitions] = {}


class MemberSpec(NamedTuple):
    """A member as an assignor sees it; `assigned` is its last target assignment."""

    topic_ids: frozenset[Uuid]
    assigned: Partitions = NOTHING
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group as an assignor sees it. Every topic that a member names has a partition count."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[Uuid, int]
    homogeneous: bool
    """Do all members subscribe to the same topics?"""


class Assignor(Protocol):
    """Gives every partition of the subscribed topics to one of its subscribers."""

    def __call__(self, group: GroupSpec) -> dict[str, Partitions]: ...
