"""Consecutive records in the same state, and how such runs are cut.

The states of a record and their ways:

    available -> acquired        delivered to a member, whose lock runs until `locked_until_ms`
    acquired  -> available       released, or the lock ran out
    acquired  -> acknowledged    the member is done with it
    acquired  -> archived        rejected, or delivered as often as may be
    available -> archived        not in the log any more
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from ottla.wire.dataclass import dataclass, replace
from ottla.wire.errors import ErrorCode, KafkaError


class RecordState(IntEnum):
    """The numbers are those of the records in `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


TERMINAL: Final = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)

TRANSITIONS: Final[Mapping[RecordState, frozenset[RecordState]]] = {
    RecordState.AVAILABLE: frozenset({RecordState.ACQUIRED, RecordState.ARCHIVED}),
    RecordState.ACQUIRED: frozenset({RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}),
    RecordState.ACKNOWLEDGED: frozenset(),
    RecordState.ARCHIVED: frozenset(),
}


class AcknowledgeType(IntEnum):
    """What a member says of a record; a gap is an offset without a record for it."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


OUTCOMES: Final[Mapping[AcknowledgeType, RecordState]] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


@dataclass(slots=True, eq=False)
class InFlightBatch:
    """Records that were first given together. Once some of them fared differently, each is looked at by itself."""

    first: int
    last: int
    is_split: bool = False

    def __len__(self) -> int:
        return self.last - self.first + 1


@dataclass(slots=True, eq=False)
class Run:
    """Records from `first` to `last`, both included, of one batch."""

    first: int
    last: int
    state: RecordState
    delivery_count: int
    batch: InFlightBatch
    member_id: str = ""
    locked_until_ms: int = 0

    def __len__(self) -> int:
        return self.last - self.first + 1

    def cut_before(self, offset: int) -> Run:
        """End in front of the offset; the rest comes back."""
        rest = replace(self, first=offset)
        self.last = offset - 1
        self.batch.is_split = True
        return rest

    def is_continued_by(self, other: Run) -> bool:
        """Is the other run the next one, and alike in everything?"""
        return (
            self.last + 1 == other.first
            and self.batch is other.batch
            and self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.locked_until_ms == other.locked_until_ms
        )

    def become(self, state: RecordState) -> None:
        """Go where the table allows to go."""
        if state not in TRANSITIONS[self.state]:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"A record cannot become {state.name.lower()}.")
        self.state = state
        self.member_id = ""
        self.locked_until_ms = 0
