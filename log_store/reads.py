"""What a read gives, and which transactions a read_committed consumer must leave out of it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.log_store.durability import failing
from ottla.log_store.txn_index import AbortedTxn
from ottla.wire.chunks import FileSlice

if TYPE_CHECKING:
    from ottla.log_store.log import Log


class ReadResult(NamedTuple):
    """A stretch of one segment, or no records, and where in which segment it begins."""

    records: FileSlice | None
    segment_base_offset: int = -1
    position: int = -1


NOTHING: Final = ReadResult(None)


def aborted_transactions(log: Log, offset: int, result: ReadResult) -> list[AbortedTxn]:
    """The aborted transactions that touch what a read from `offset` gave. The offset index bounds the read
    from above, so some that lie a little behind it may be among them, which does no harm."""
    active = log.segments[-1]
    if result.records is None or (
        result.segment_base_offset == active.base_offset and not active.txn_index.has_entries
    ):
        return []  # as at the end of most logs
    with failing(log, "read"):
        return _aborted_since(log, offset, result.records, log.slot_of(result.segment_base_offset))


def _aborted_since(log: Log, offset: int, records: FileSlice, slot: int) -> list[AbortedTxn]:
    # The marker of a transaction may lie in any later segment, but few logs have aborted transactions at all.
    indexes = [
        segment.txn_index for segment in islice(log.segments, slot, None) if segment.txn_index.has_entries
    ]
    if not indexes:
        return []
    upper_bound = log.segments[slot].offset_index.upper_bound_offset(records.position + len(records))
    if upper_bound is None:
        is_last = slot + 1 == len(log.segments)
        upper_bound = log.log_end_offset if is_last else log.segments[slot + 1].base_offset
    aborted: list[AbortedTxn] = []
    for index in indexes:
        found, complete = index.collect(offset, upper_bound)
        aborted += found
        if complete:
            break
    return aborted
