"""Batches that cleaning decides on without a look at keys: markers, what was aborted, and what has no records left.

Tombstones and the markers of transactions without data get a delete horizon when they are first met: the time after
which they may go (KIP-534). A batch stays as an empty header if a producer's last sequence would be lost with it, or
if it is the last one of the round, so that the end is not lost.
"""

from __future__ import annotations

from typing import Final

from ottla.log_store.compaction.chunks import Chunk
from ottla.log_store.compaction.header_fields import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET_DELTA,
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
    Header,
)
from ottla.log_store.compaction.job import CleaningJob
from ottla.log_store.compaction.rewriting import Rewritten, emptied, with_horizon
from ottla.log_store.compaction.transactions import CleanedTransactions
from ottla.log_store.txn_index import AbortedTxn
from ottla.wire.records.header import CONTROL_BIT, DELETE_HORIZON_BIT, TRANSACTIONAL_BIT

_LATEST_MS: Final = (1 << 63) - 1


class SpecialBatches:
    """Decides on them, in the order of the log."""

    def __init__(self, job: CleaningJob, transactions: CleanedTransactions) -> None:
        self._aborted: list[AbortedTxn] = []
        self._transactions = transactions
        self._producers = job.producers
        self._now_ms = job.now_ms
        self.new_horizon_ms = min(job.now_ms + job.delete_retention_ms, _LATEST_MS)
        self._end_offset = job.first_uncleanable_offset

    def filter_special(self, chunk: Chunk, index: int) -> tuple[bool, Rewritten | None]:
        """What becomes of a marker, or of a batch of an aborted transaction; False for any other batch."""
        header = chunk.headers[index]
        if header[ATTRIBUTES] & CONTROL_BIT:
            return True, self._filter_control(chunk, index)
        base_offset = header[BASE_OFFSET]
        if header[ATTRIBUTES] & TRANSACTIONAL_BIT and self._transactions.see_data(
            header[PRODUCER_ID], base_offset, base_offset + header[LAST_OFFSET_DELTA]
        ):
            return True, self._emptied(chunk, index)
        return False, None

    def take_aborted(self) -> list[AbortedTxn]:
        """The entries for the transaction index that the markers since the last call have."""
        taken, self._aborted = self._aborted, []
        return taken

    def _filter_control(self, chunk: Chunk, index: int) -> Rewritten | None:
        """What becomes of a marker."""
        chunk.check(index)
        header = chunk.headers[index]
        marker = self._transactions.see_marker(chunk.view(index))
        if marker.aborted is not None:
            self._aborted.append(marker.aborted)
        if not marker.is_removable:
            return as_it_is(chunk, index)
        if not header[RECORDS_COUNT]:
            return as_it_is(chunk, index) if self._must_stay(header) else None
        if not header[ATTRIBUTES] & DELETE_HORIZON_BIT:
            return with_horizon(
                header, bytes(chunk.payload(index)), bytes(header[RECORDS_COUNT]), self.new_horizon_ms
            )
        if self._now_ms >= header[BASE_TIMESTAMP]:
            return self._emptied(chunk, index)
        return as_it_is(chunk, index)

    def _must_stay(self, header: Header) -> bool:
        """Whether something would be lost with a batch that has no records."""
        last_offset = header[BASE_OFFSET] + header[LAST_OFFSET_DELTA]
        if last_offset + 1 == self._end_offset:
            return True
        tail = self._producers.get(header[PRODUCER_ID])
        if tail is None:
            return False
        if tail[0] >= 0:
            return last_offset == tail[0]
        return bool(header[ATTRIBUTES] & CONTROL_BIT) and header[PRODUCER_EPOCH] == tail[1]

    def _emptied(self, chunk: Chunk, index: int) -> Rewritten | None:
        """A batch that loses all its records."""
        header = chunk.headers[index]
        if not self._must_stay(header):
            return None
        chunk.check(index)
        return emptied(header)


def as_it_is(chunk: Chunk, index: int) -> Rewritten:
    return Rewritten(
        chunk.data[chunk.bounds[index] : chunk.bounds[index + 1]], chunk.headers[index][MAX_TIMESTAMP]
    )
