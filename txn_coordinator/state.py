"""The states of a transactional id and the moves between them, as data.

    EMPTY ── AddPartitions ──▶ ONGOING ── EndTxn ──▶ PREPARE_COMMIT ── all markers ──▶ COMPLETE_COMMIT ──┐
      ▲                          │  ▲                                                                    │
      │                          │  └── AddPartitions ──────────────────────────────────────────────────┤
      │      EndTxn, time-out, a newer producer                                                          │
      │                          └────────────────▶ PREPARE_ABORT ──── all markers ──▶ COMPLETE_ABORT ──┤
      └── InitProducerId ───────────────────────────────────────────────────────────────────────────────┘

With transactions V2 (KIP-890) an abort is also taken where no transaction is open, since a producer cannot always
know whether its first partition was added: EMPTY and COMPLETE_* move to PREPARE_ABORT too.

DEAD and PREPARE_EPOCH_FENCE are states that Kafka passes through in memory; no record has them, they are here
because tools may ask for them by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """Kafka's numbers, as records carry them."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The name that tools show, such as `PrepareCommit`."""
        return self.name.title().replace("_", "")


EMPTY: Final = TransactionState.EMPTY
ONGOING: Final = TransactionState.ONGOING
PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT

MOVES: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    EMPTY: frozenset({EMPTY, ONGOING, PREPARE_ABORT}),
    ONGOING: frozenset({ONGOING, PREPARE_COMMIT, PREPARE_ABORT}),
    PREPARE_COMMIT: frozenset({COMPLETE_COMMIT}),
    PREPARE_ABORT: frozenset({COMPLETE_ABORT}),
    COMPLETE_COMMIT: frozenset({EMPTY, ONGOING, PREPARE_ABORT}),
    COMPLETE_ABORT: frozenset({EMPTY, ONGOING, PREPARE_ABORT}),
}
"""Where a transactional id may go from each state."""

AT_REST: Final = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
"""No transaction is open; only such ids may expire."""

ENDING: Final = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
"""The end is decided and not all markers are known to be written."""

STATES_BY_LABEL: Final[Mapping[str, TransactionState]] = {state.label: state for state in TransactionState}
