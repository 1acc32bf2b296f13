"""What every client must be able to do in the shared cases.

Consumers work by assignment with explicit offsets: no group, no commits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Headers = tuple[tuple[str, bytes | None], ...]

# Longer than any answer takes on a busy machine; reached only when something is wrong.
PATIENCE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Message:
    """What a producer is given."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Stored:
    """What a consumer sees."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


class Client(Protocol):
    """One client library."""

    name: str

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Send all, wait for all acknowledgements; their offsets (with acks 0 nobody knows them: -1)."""

    def read(
        self, bootstrap: str, topic: str, partition: int = 0, start: int = 0, count: int | None = None
    ) -> list[Stored]:
        """`count` records from offset `start` on, or all there are up to the end of the partition."""

    def watermarks(self, bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
        """Beginning and end offset."""

    def offset_at(self, bootstrap: str, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        """The first offset with at least that timestamp; None if there is none."""
