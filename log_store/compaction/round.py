"""A round of cleaning over one log: which segments are read, in which order and groups, and what is told at the end.

What is done with the batches is left to one of two that do the same: `interpreted`, all in Python, and `compiled`,
which has its loops in C.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from ottla.log_store.compaction.choice import group_segments
from ottla.log_store.compaction.cleaned_segment import CleanedSegment
from ottla.log_store.compaction.job import CleanedGroup, CleaningJob, CleaningResult
from ottla.log_store.compaction.throttle import Throttle
from ottla.log_store.files import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    TXN_INDEX_SUFFIX,
    FileSystem,
    offset_name,
    offset_of_name,
)
from ottla.log_store.retention import SegmentFacts
from ottla.log_store.segment import Segment
from ottla.log_store.txn_index import AbortedTxn, TxnIndex


class Round(ABC):
    """One round over one log. First the keys are mapped, then the groups are cleaned."""

    def __init__(self, job: CleaningJob, fs: FileSystem) -> None:
        self.job = job
        self.fs = fs
        self.throttle = Throttle(job.max_bytes_per_second)
        self.aborted = _aborted_transactions(fs, job.directory)
        self.read_bytes = self.written_bytes = 0

    # ---- what is done with batches

    @property
    @abstractmethod
    def latest_offset(self) -> int:
        """How far the map of keys reaches."""

    @property
    @abstractmethod
    def indexed_bytes(self) -> int:
        """How many bytes of the log that is."""

    @property
    @abstractmethod
    def keys(self) -> int:
        """How many keys there are in the map."""

    @abstractmethod
    def map_segment(self, segment: Segment, position: int) -> bool:
        """Take the keys of a segment from a position on; False if the map became full before its end."""

    @abstractmethod
    def map_reached(self, offset: int) -> None:
        """The map covers everything up to an offset: there may be none at the end of a segment."""

    @abstractmethod
    def begin_filter(self) -> None:
        """All keys are in the map."""

    @abstractmethod
    def clean_segment(self, segment: Segment, cleaned: CleanedSegment) -> None:
        """Write what stays of a segment."""

    # ---- the two passes

    def result(self) -> CleaningResult:
        return CleaningResult(
            end_offset=self.latest_offset + 1,
            indexed_bytes=self.indexed_bytes,
            read_bytes=self.read_bytes,
            written_bytes=self.written_bytes,
            keys=self.keys,
        )

    def map_keys(self) -> None:
        """Fill the map from the dirty segments."""
        job = self.job
        ends = [*job.segments[1:], job.first_uncleanable_offset]
        for base_offset, end_offset in zip(job.segments, ends, strict=True):
            if end_offset <= job.first_dirty_offset:
                continue
            segment = self._open(base_offset)
            try:
                if not self.map_segment(segment, segment.offset_index.lookup(job.first_dirty_offset)[1]):
                    break
            finally:
                segment.release()
            self.map_reached(end_offset - 1)

    def clean_groups(self) -> Iterator[CleanedGroup]:
        """Write the replacement of each group."""
        end_offset = self.latest_offset + 1
        self.begin_filter()
        for group in self._groups([base for base in self.job.segments if base < end_offset], end_offset):
            self._clean_group(group)
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

    def _clean_group(self, group: Sequence[int]) -> None:
        cleaned = CleanedSegment(self.fs, self.job, group[0], self.throttle)
        modified_ns = 0
        for base_offset in group:
            segment = self._open(base_offset)
            try:
                self.clean_segment(segment, cleaned)
                modified_ns = os.fstat(segment.file.fd).st_mtime_ns
            finally:
                segment.release()
        self.written_bytes += cleaned.finish(modified_ns)

    def _open(self, base_offset: int) -> Segment:
        return Segment.open(self.fs, self.job.directory, base_offset, index_bytes=0, now_ms=self.job.now_ms)


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
