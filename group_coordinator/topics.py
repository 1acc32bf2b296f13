"""What groups need to know of the cluster's topics; the server answers it from the metadata image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ottla.wire.uuids import Uuid


class Topic(NamedTuple):
    name: str
    topic_id: Uuid
    partition_count: int


class Topics(Protocol):
    def by_name(self, name: str) -> Topic | None: ...

    def by_id(self, topic_id: Uuid) -> Topic | None: ...

    def names(self) -> Iterable[str]: ...
