"""The cleaning of a log: map the keys of its dirty part, then copy what survives of all its cleanable segments.

Two passes. The first reads the dirty segments and notes the last batch of each key, until the map is full or the part
ends. The second reads everything up to there, the clean part included, in groups of neighbouring segments, and
writes each group as one new segment with the suffix `.cleaned`, fsynced. Putting it in the place of the old
ones is the work of whoever owns the log (see swap). Nothing but `.cleaned` files is written here, so this may run
anywhere, in another process too, and be cut off at any time.

Work is done on many records at once wherever it can be: a step in Python takes as long as Kafka has for a record.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Final

from ottla.log_store.compaction.batch_filter import BatchFilter, KeptBatch
from ottla.log_store.compaction.choice import group_segments
from ottla.log_store.compaction.chunk_keys import map_keys
from ottla.log_store.compaction.chunks import Chunk, read_chunks
from ottla.log_store.compaction.cleaned_segment import CleanedSegment
from ottla.log_store.compaction.header_fields import (
    BASE_OFFSET,
    LAST_OFFSET_DELTA,
    RECORDS_COUNT,
)
from ottla.log_store.compaction.job import CleanedGroup, CleaningJob, CleaningResult
from ottla.log_store.compaction.key_map import KeyMap
from ottla.log_store.compaction.throttle import Throttle
from ottla.log_store.compaction.transactions import CleanedTransactions
from ottla.log_store.files import (
    CLEANED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OS_FILE_SYSTEM,
    TXN_INDEX_SUFFIX,
    FileSystem,
    offset_name,
    offset_of_name,
    unlink_if_there,
)
from ottla.log_store.retention import SegmentFacts
from ottla.log_store.segment import Segment
from ottla.log_store.txn_index import AbortedTxn, TxnIndex
from ottla.wire.records.header import CONTROL_BIT, TRANSACTIONAL_BIT

_SPECIAL: Final = TRANSACTIONAL_BIT | CONTROL_BIT


def clean(job: CleaningJob, fs: FileSystem = OS_FILE_SYSTEM) -> Iterator[CleanedGroup | CleaningResult]:
    """Clean a log as far as the map of keys reaches; yields each group when its replacement lies ready, and at last
    the result. KafkaError if the log is damaged, OSError if the disk refuses."""
    cleaning = _Cleaning(job, fs)
    cleaning.map_keys()
    yield from cleaning.clean_groups()
    yield cleaning.result()


class _Cleaning:
    """One round over one log."""

    def __init__(self, job: CleaningJob, fs: FileSystem) -> None:
        self.job = job
        self.fs = fs
        self.key_map = KeyMap(job.key_map_bytes * job.load_factor)
        self.throttle = Throttle(job.max_bytes_per_second)
        self.aborted = _aborted_transactions(fs, job.directory)
        self.indexed_bytes = self.read_bytes = self.written_bytes = 0

    def result(self) -> CleaningResult:
        return CleaningResult(
            end_offset=self.key_map.latest_offset + 1,
            indexed_bytes=self.indexed_bytes,
            read_bytes=self.read_bytes,
            written_bytes=self.written_bytes,
            keys=len(self.key_map),
        )

    def map_keys(self) -> None:
        """Fill the map from the dirty segments."""
        job, key_map = self.job, self.key_map
        key_map.latest_offset = job.first_dirty_offset - 1
        transactions = CleanedTransactions(self.aborted)
        ends = [*job.segments[1:], job.first_uncleanable_offset]
        for base_offset, end_offset in zip(job.segments, ends, strict=True):
            if end_offset <= job.first_dirty_offset:
                continue
            segment = self._open(base_offset)
            try:
                if not self._map_segment(segment, transactions):
                    break
            finally:
                segment.release()
            key_map.latest_offset = end_offset - 1  # offsets may be missing at its end
        key_map.seal()

    def _map_segment(self, segment: Segment, transactions: CleanedTransactions) -> bool:
        """Take the keys of a segment; False if the map became full before its end."""
        position = segment.offset_index.lookup(self.job.first_dirty_offset)[1]
        return all(
            self._map_chunk(chunk, transactions) for chunk in read_chunks(segment, position, self.throttle)
        )

    def _map_chunk(self, chunk: Chunk, transactions: CleanedTransactions) -> bool:
        """Take the keys of a chunk, those of small batches together; False if the map became full before its end."""
        key_map, bounds = self.key_map, chunk.bounds
        first = chunk.first_reaching(self.job.first_dirty_offset)
        chunk.check_all(first)
        left_out = map_keys(key_map, chunk, _batches_with_keys(chunk, first, transactions))
        end = len(chunk.headers) if left_out is None else left_out
        if end > first:
            last = chunk.headers[end - 1]
            key_map.latest_offset = last[BASE_OFFSET] + last[LAST_OFFSET_DELTA]
            self.indexed_bytes += bounds[end] - bounds[first]
        return left_out is None

    def clean_groups(self) -> Iterator[CleanedGroup]:
        """Write the replacement of each group."""
        job = self.job
        end_offset = self.key_map.latest_offset + 1
        batch_filter = BatchFilter(
            self.key_map,
            CleanedTransactions(self.aborted),
            job.producers,
            now_ms=job.now_ms,
            delete_retention_ms=job.delete_retention_ms,
            end_offset=job.first_uncleanable_offset,
        )
        for group in self._groups([base for base in job.segments if base < end_offset], end_offset):
            self._clean_group(group, batch_filter)
            yield CleanedGroup(group)

    def _groups(self, base_offsets: Sequence[int], end_offset: int) -> list[list[int]]:
        facts, index_bytes = [], []
        for base_offset in base_offsets:
            stem = os.path.join(self.job.directory, offset_name(base_offset))
            facts.append(SegmentFacts(base_offset, os.stat(stem + LOG_SUFFIX).st_size, 0))
            index_bytes.append(max(_size_of(stem + suffix) for suffix in INDEX_SUFFIXES[:2]))
        groups = group_segments(
            facts,
            index_bytes,
            end_offset,
            max_bytes=self.job.segment_bytes,
            max_index_bytes=self.job.segment_index_bytes,
        )
        return [[segment.base_offset for segment in group] for group in groups]

    def _clean_group(self, group: Sequence[int], batch_filter: BatchFilter) -> None:
        cleaned = CleanedSegment(self.fs, self.job, group[0], self.throttle)
        modified_ns = 0
        for base_offset in group:
            segment = self._open(base_offset)
            try:
                self._clean_segment(segment, cleaned, batch_filter)
                modified_ns = os.fstat(segment.file.fd).st_mtime_ns
            finally:
                segment.release()
        self.written_bytes += cleaned.finish(modified_ns)

    def _clean_segment(self, segment: Segment, cleaned: CleanedSegment, batch_filter: BatchFilter) -> None:
        buffer_bytes = self.job.buffer_bytes
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

    def _open(self, base_offset: int) -> Segment:
        return Segment.open(self.fs, self.job.directory, base_offset, index_bytes=0, now_ms=self.job.now_ms)


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


def remove_leftovers(fs: FileSystem, directory: str) -> None:
    """Remove what a round that was given up has made; the directory may be gone."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(directory):
            if name.endswith(CLEANED_SUFFIX):
                unlink_if_there(fs, os.path.join(directory, name))


def _aborted_transactions(fs: FileSystem, directory: str) -> list[AbortedTxn]:
    """All aborted transactions of a log: a marker may lie behind what is cleaned."""
    found: list[AbortedTxn] = []
    for name in sorted(os.listdir(directory)):
        if name.endswith(TXN_INDEX_SUFFIX):
            path = os.path.join(directory, name)
            found += TxnIndex(fs, path, offset_of_name(name), exists=True).entries
    return found


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
