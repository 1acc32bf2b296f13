"""What cleaning makes of batches: the same bytes, fewer records, an empty header, or nothing.

A batch of the dirty part was checked against its checksum when its keys were read. One of the clean part is checked
here, and so is every batch that is made anew: damage must not be given a new, right checksum.
"""

from __future__ import annotations

from itertools import islice, repeat

from ottla.log_store.compaction.chunk_keys import flags_of
from ottla.log_store.compaction.chunks import Chunk
from ottla.log_store.compaction.header_fields import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET_DELTA,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    RECORDS_COUNT,
)
from ottla.log_store.compaction.job import CleaningJob
from ottla.log_store.compaction.key_map import KeyMap
from ottla.log_store.compaction.rewriting import Flags, Rewritten, reduced, with_horizon
from ottla.log_store.compaction.small_batches import FEW, reduced_batches
from ottla.log_store.compaction.special_batches import SpecialBatches, as_it_is
from ottla.log_store.compaction.transactions import CleanedTransactions
from ottla.log_store.files import Buffer
from ottla.wire.records.header import CONTROL_BIT, DELETE_HORIZON_BIT, TRANSACTIONAL_BIT
from ottla.wire.records.key_scan import scan_keys

KeptBatch = tuple[Buffer, int, int]  # its bytes, last offset and greatest timestamp


class BatchFilter(SpecialBatches):
    """Decides on the batches of a log, in their order."""

    def __init__(self, job: CleaningJob, key_map: KeyMap, transactions: CleanedTransactions) -> None:
        super().__init__(job, transactions)
        self._key_map = key_map

    def filter(self, chunk: Chunk) -> list[KeptBatch]:
        """What is to be written for a chunk of batches."""
        flags = flags_of(self._key_map, chunk)
        superseded, firsts, with_tombstones = flags
        going_of_each = map(superseded.count, repeat(1), firsts, islice(firsts, 1, None))
        data, bounds = chunk.data, chunk.bounds
        see_data = self._transactions.see_data
        result: Rewritten | None
        kept: list[KeptBatch] = []
        small = []  # batches that are made anew together, and their places
        for index, (header, going) in enumerate(zip(chunk.headers, going_of_each, strict=True)):
            attributes, count = header[ATTRIBUTES], header[RECORDS_COUNT]
            last_offset = header[BASE_OFFSET] + header[LAST_OFFSET_DELTA]
            if attributes & CONTROL_BIT:
                result = self._filter_control(chunk, index)
            elif attributes & TRANSACTIONAL_BIT and see_data(
                header[PRODUCER_ID], header[BASE_OFFSET], last_offset
            ):
                result = self._emptied(chunk, index)
            elif index in with_tombstones:
                result = self._filter_tombstones(chunk, index, superseded[firsts[index] : firsts[index + 1]])
            elif not going:
                if count or self._must_stay(header):
                    kept.append((data[bounds[index] : bounds[index + 1]], last_offset, header[MAX_TIMESTAMP]))
                continue
            elif going == count:
                result = self._emptied(chunk, index)
            elif count <= FEW:
                small.append((index, len(kept)))
                kept.append((b"", last_offset, 0))
                continue
            else:
                chunk.check(index)
                flags_of_batch = superseded[firsts[index] : firsts[index + 1]]
                result = reduced(header, bytes(chunk.payload(index)), flags_of_batch)
            if result is not None:
                kept.append((result.data, last_offset, result.max_timestamp))
        if small:
            made = reduced_batches(chunk, [index for index, _ in small], flags)
            for (_, place), (batch, max_timestamp) in zip(small, made, strict=True):
                kept[place] = (batch, kept[place][1], max_timestamp)
        return kept

    def _filter_tombstones(self, chunk: Chunk, index: int, superseded: Flags) -> Rewritten | None:
        """What becomes of a batch that has tombstones."""
        chunk.check(index)
        header = chunk.headers[index]
        payload = bytes(chunk.payload(index))
        tombstones = scan_keys(payload, header[RECORDS_COUNT]).tombstones
        if not header[ATTRIBUTES] & DELETE_HORIZON_BIT:
            if not all(superseded[record] for record in tombstones):
                return with_horizon(header, payload, superseded, self.new_horizon_ms)
        elif self._now_ms >= header[BASE_TIMESTAMP]:
            superseded = bytearray(superseded)
            for record in tombstones:
                superseded[record] = 1
        if 1 not in superseded:
            return as_it_is(chunk, index)
        if 0 not in superseded:
            return self._emptied(chunk, index)
        return reduced(header, payload, superseded)
