"""What becomes of transactions while a log is cleaned: whose data goes, and when their markers may.

Data of an aborted transaction is removed at once. A marker stays until a pass meets no batch of its transaction any
more, and then until its delete horizon has passed (KIP-534), because readers in the middle of the log
need it. An aborted transaction that still has data keeps its entry in the transaction index.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.log_store.txn_index import AbortedTxn
from ottla.wire.records.control import ControlType, control_type_of
from ottla.wire.records.header import BatchView
from ottla.wire.records.records import iter_records


class Marker(NamedTuple):
    """What a control batch means: whether its transaction has no data left, and its entry for the index."""

    is_removable: bool
    aborted: AbortedTxn | None = None


class CleanedTransactions:
    """Follows a pass over the batches of a log, in their order."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._to_come = sorted(set(aborted), key=lambda txn: -txn.first_offset)
        self._aborted: dict[int, AbortedTxn] = {}  # producer id -> the aborted transaction it is in
        self._with_data: set[int] = set()  # those of them that have data
        self._committed: set[int] = set()  # producers that have data of a transaction that is not aborted

    def see_data(self, producer_id: int, base_offset: int, last_offset: int) -> bool:
        """Note a data batch of a transaction; True if that was aborted."""
        self._advance_to(base_offset, last_offset)
        if producer_id in self._aborted:
            self._with_data.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def see_marker(self, view: BatchView) -> Marker:
        """Note a control batch."""
        self._advance_to(view.base_offset, view.last_offset)
        record = next(iter_records(view), None)
        if record is None:  # emptied before
            return Marker(True)
        producer_id = view.producer_id
        control_type = control_type_of(record)
        if control_type == ControlType.ABORT:
            txn = self._aborted.pop(producer_id, None)
            had_data = producer_id in self._with_data
            self._with_data.discard(producer_id)
            return Marker(not had_data, txn if had_data else None)
        if control_type == ControlType.COMMIT:
            had_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return Marker(not had_data)
        return Marker(False)

    def _advance_to(self, base_offset: int, last_offset: int) -> None:
        to_come = self._to_come
        while to_come and to_come[-1].first_offset <= last_offset:
            txn = to_come.pop()
            if txn.last_offset >= base_offset:  # else it ended before the pass began
                self._aborted.setdefault(txn.producer_id, txn)
