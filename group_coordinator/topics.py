"""What groups need to know of the cluster's topics; the server answers it from the metadata image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ottla.wire.uuids import Uuid


class Topic(NamedTuple):
    name: str
    topic_id: Uuid
    partition_count: int
    partition_racks: tuple[tuple[str, ...], ...] = ()
    """The racks of each partition's replicas, as far as brokers have racks; empty when none has."""


class Topics(Protocol):
    @property
    def version(self) -> int:
        """The offset of the metadata that this shows; it never goes back."""
        ...

    def by_name(self, name: str) -> Topic | None: ...

    def by_id(self, topic_id: Uuid) -> Topic | None: ...

    def names(self) -> Iterable[str]: ...
