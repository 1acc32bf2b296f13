"""What a group of any kind answers to offsets and to admins."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple, Protocol

from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.records.offsets import OffsetCommitValue
from ottla.wire.uuids import Uuid


class Committer(NamedTuple):
    """Who commits offsets; a negative generation is nobody of the group."""

    member_id: str
    group_instance_id: str | None
    generation_id: int
    api_version: int
    is_transactional: bool = False


PartitionCheck = Callable[[str, Uuid, int], None]
"""Whether the offset of a topic, by name and id, and partition may be committed; KafkaError when not."""


class Group(Protocol):
    TYPE: ClassVar[str]

    @property
    def is_empty(self) -> bool:
        """Without members."""
        ...

    @property
    def state_name(self) -> str: ...

    @property
    def listed_protocol_type(self) -> str: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def check_offset_commit(self, committer: Committer) -> PartitionCheck | None:
        """KafkaError when offsets may not be committed now; a check of each partition when there is one to make."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """KafkaError when this member may not know the offsets."""
        ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None: ...

    def offset_expires_from_ms(self, offset: OffsetCommitValue) -> int | None:
        """When the retention of an offset begins; None while it may not expire."""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group, but not its offsets."""
        ...
