"""What a round of cleaning does with batches, in Python: on many records at once wherever it can be, because a step in
Python takes as long as Kafka has for a record. `compiled` does the same in C, and is compared with this."""

from __future__ import annotations

from typing import Final

from ottla.log_store.compaction.batch_filter import BatchFilter, KeptBatch
from ottla.log_store.compaction.chunk_keys import map_keys
from ottla.log_store.compaction.chunks import Chunk, read_chunks
from ottla.log_store.compaction.cleaned_segment import CleanedSegment
from ottla.log_store.compaction.header_fields import BASE_OFFSET, LAST_OFFSET_DELTA, RECORDS_COUNT
from ottla.log_store.compaction.job import CleaningJob
from ottla.log_store.compaction.key_map import KeyMap
from ottla.log_store.compaction.round import Round
from ottla.log_store.compaction.transactions import CleanedTransactions
from ottla.log_store.files import FileSystem
from ottla.log_store.segment import Segment
from ottla.wire.records.header import CONTROL_BIT, TRANSACTIONAL_BIT

_SPECIAL: Final = TRANSACTIONAL_BIT | CONTROL_BIT


class InterpretedRound(Round):
    """A round with its loops in Python."""

    def __init__(self, job: CleaningJob, fs: FileSystem) -> None:
        super().__init__(job, fs)
        self._key_map = KeyMap(job.key_map_bytes * job.load_factor)
        self._key_map.latest_offset = job.first_dirty_offset - 1
        self._transactions = CleanedTransactions(self.aborted)
        self._batch_filter = BatchFilter(job, self._key_map, CleanedTransactions(self.aborted))
        self._indexed_bytes = 0

    @property
    def latest_offset(self) -> int:
        return self._key_map.latest_offset

    @property
    def indexed_bytes(self) -> int:
        return self._indexed_bytes

    @property
    def keys(self) -> int:
        return len(self._key_map)

    def map_segment(self, segment: Segment, position: int) -> bool:
        return all(self._map_chunk(chunk) for chunk in read_chunks(segment, position, self.throttle))

    def _map_chunk(self, chunk: Chunk) -> bool:
        """Take the keys of a chunk, those of small batches together; False if the map became full before its end."""
        key_map, bounds = self._key_map, chunk.bounds
        first = chunk.first_reaching(self.job.first_dirty_offset)
        chunk.check_all(first)
        left_out = map_keys(key_map, chunk, _batches_with_keys(chunk, first, self._transactions))
        end = len(chunk.headers) if left_out is None else left_out
        if end > first:
            last = chunk.headers[end - 1]
            key_map.latest_offset = last[BASE_OFFSET] + last[LAST_OFFSET_DELTA]
            self._indexed_bytes += bounds[end] - bounds[first]
        return left_out is None

    def map_reached(self, offset: int) -> None:
        self._key_map.latest_offset = offset

    def begin_filter(self) -> None:
        self._key_map.seal()

    def clean_segment(self, segment: Segment, cleaned: CleanedSegment) -> None:
        buffer_bytes, batch_filter = self.job.buffer_bytes, self._batch_filter
        kept: list[KeptBatch] = []
        waiting = 0
        for chunk in read_chunks(segment, 0, self.throttle):
            self.read_bytes += len(chunk.data)
            filtered = batch_filter.filter(chunk)
            kept += filtered
            waiting += sum([len(batch[0]) for batch in filtered])
            if waiting >= buffer_bytes:
                cleaned.write(kept)
                kept, waiting = [], 0
        cleaned.write(kept)
        for txn in batch_filter.take_aborted():
            cleaned.segment.txn_index.append(txn)


def _batches_with_keys(chunk: Chunk, first: int, transactions: CleanedTransactions) -> list[int]:
    """The indexes of the batches from `first` on that have records, but for markers and what was aborted."""
    if not chunk.attributes & _SPECIAL:
        return [index for index in range(first, len(chunk.headers)) if chunk.headers[index][RECORDS_COUNT]]
    found = []
    for index in range(first, len(chunk.headers)):
        base_offset, _, _, _, _, attributes, delta, _, _, producer_id, _, _, count = chunk.headers[index]
        if attributes & _SPECIAL:
            if attributes & CONTROL_BIT:
                transactions.see_marker(chunk.view(index))
                continue
            if transactions.see_data(producer_id, base_offset, base_offset + delta):
                continue
        if count:
            found.append(index)
    return found
