"""A segment: a stretch of the log in one file, with its three indexes.

    <base offset>.log        record batches one after the other, exactly as they travel on the wire
    <base offset>.index      offset -> position         (offset_index)
    <base offset>.timeindex  timestamp -> offset        (time_index)
    <base offset>.txnindex   aborted transactions       (txn_index), only if there are any

The base offset is in 20 digits. Every offset of the segment is at or above it and at most 2^31-1 beyond it.
The active segment also remembers where its last batches lie, so that a reader at the end of the log is
answered without touching a file.
"""

from __future__ import annotations

import logging
import os
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.log_store.files import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    Buffer,
    FileSystem,
    LogFile,
    closed_log_file,
    offset_name,
)
from ottla.log_store.index_file import LARGEST_RELATIVE_OFFSET
from ottla.log_store.offset_index import OffsetIndex
from ottla.log_store.page_cache import NotInMemory
from ottla.log_store.time_index import NO_TIMESTAMP, TimeEntry, TimeIndex
from ottla.log_store.txn_index import TxnIndex
from ottla.wire.records.header import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    SMALLEST_BATCH_LENGTH,
    BatchView,
    CorruptBatch,
    batch_size_at,
)

if TYPE_CHECKING:
    from ottla.log_store.batch_run import BatchRun

logger = logging.getLogger("ottla.log_store")

_SCAN_BYTES = 8192
_READ_BYTES = 256 * 1024
_RECENT_BATCHES = 1024

_OFFSETS = struct.Struct(">qi11xi")  # base_offset, batch_length, last_offset_delta
_unpack_offsets = _OFFSETS.unpack_from
_unpack_base_offset = struct.Struct(">q").unpack


Read = Callable[[int, int], bytes]  # of a position, so many bytes


class BatchPosition(NamedTuple):
    """Where a batch lies in its segment."""

    position: int
    size: int


class Segment:
    """One segment and its files."""

    def __init__(
        self,
        file: LogFile,
        indexes: tuple[OffsetIndex, TimeIndex, TxnIndex],
        base_offset: int,
        created_ms: int,
    ) -> None:
        self.file = file
        self.offset_index, self.time_index, self.txn_index = indexes
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.roll_jitter_ms = 0
        self.index_interval_bytes = 4096
        self._bytes_since_index_entry = 0
        self._greatest: TimeEntry | None = None
        self._first_batch_timestamp: int | None = None
        self._recent_last: list[int] = []  # last offsets of the last batches, and
        self._recent_positions: list[int] = []  # where those begin
        self._recent_floor = 0  # base offset of the first of them

    @classmethod
    def create(
        cls,
        fs: FileSystem,
        directory: str,
        base_offset: int,
        *,
        index_bytes: int,
        now_ms: int,
        preallocate: int = 0,
        suffix: str = "",
    ) -> Segment:
        """A new empty segment with its files, whose names end with `suffix`."""
        stem = os.path.join(directory, offset_name(base_offset))
        file = LogFile.create(fs, stem + LOG_SUFFIX + suffix, preallocate_bytes=preallocate)
        offset_index = OffsetIndex(fs, stem + OFFSET_INDEX_SUFFIX + suffix, base_offset, index_bytes, 0)
        time_index = TimeIndex(fs, stem + TIME_INDEX_SUFFIX + suffix, base_offset, index_bytes, 0)
        offset_index.preallocate()
        time_index.preallocate()
        txn_index = TxnIndex(fs, stem + TXN_INDEX_SUFFIX + suffix, base_offset, exists=False)
        return cls(file, (offset_index, time_index, txn_index), base_offset, now_ms)

    @classmethod
    def open(
        cls,
        fs: FileSystem,
        directory: str,
        base_offset: int,
        *,
        index_bytes: int,
        now_ms: int,
        suffix: str = "",
    ) -> Segment:
        """An existing segment; an index file that is missing is seen as an empty one."""
        stem = os.path.join(directory, offset_name(base_offset))
        file = LogFile.open(fs, stem + LOG_SUFFIX + suffix)
        offset_path = stem + OFFSET_INDEX_SUFFIX + suffix
        time_path = stem + TIME_INDEX_SUFFIX + suffix
        offset_index = OffsetIndex(fs, offset_path, base_offset, index_bytes, _length_of(offset_path))
        time_index = TimeIndex(fs, time_path, base_offset, index_bytes, _length_of(time_path))
        txn_path = stem + TXN_INDEX_SUFFIX + suffix
        txn_index = TxnIndex(fs, txn_path, base_offset, exists=os.path.exists(txn_path))
        return cls(file, (offset_index, time_index, txn_index), base_offset, now_ms)

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def greatest_timestamp(self) -> TimeEntry:
        """The greatest timestamp, and the last offset of the batch that has it; -1 if there is none."""
        if self._greatest is None:
            self._greatest = self.time_index.last_entry
        return self._greatest

    @property
    def largest_timestamp(self) -> int:
        """What retention goes by: the greatest timestamp, or else when the file was last written."""
        timestamp = self.greatest_timestamp.timestamp
        return timestamp if timestamp >= 0 else int(os.fstat(self.file.fd).st_mtime * 1000)

    def reaches(self, offset: int) -> bool:
        """Whether `offset` can be told relative to the base offset in 31 bits."""
        return offset - self.base_offset <= LARGEST_RELATIVE_OFFSET

    @property
    def first_batch_timestamp(self) -> int:
        """The greatest timestamp of the first batch; -1 if there is none."""
        first = self._first_batch_timestamp
        if first is None and self.file.size:
            view = next(self.read_batches(0), None)
            first = self._first_batch_timestamp = NO_TIMESTAMP if view is None else view[1].max_timestamp
        return NO_TIMESTAMP if first is None else first

    def waited_for_roll_ms(self, now_ms: int, timestamp: int) -> int:
        """How old the segment is: by the timestamps of its records if they have some, else by the clock."""
        first = self._first_batch_timestamp
        if first is None:
            first = self.first_batch_timestamp
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    # ---- writing

    def append(self, data: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch and index it. All of it is written, or OSError is raised and nothing is."""
        file = self.file
        position = file.size
        file.append(data)
        self.note_batch(position, len(data), base_offset, last_offset, max_timestamp)

    def has_room_for(self, run: BatchRun, last_offset: int, max_bytes: int) -> bool:
        """Whether it takes all of a run, and is not empty: its first batch says how old a segment is."""
        batches = len(run.heads)
        return (
            0 < self.file.size <= max_bytes - len(run.data)
            and self.offset_index.entries + batches <= self.offset_index.max_entries
            and self.time_index.entries + batches < self.time_index.max_entries
            and last_offset - self.base_offset <= LARGEST_RELATIVE_OFFSET
        )

    def append_run(self, run: BatchRun, offsets: list[int]) -> None:
        """Write and index many batches, of which these are the first offsets, and the one after them all. All are
        written, or OSError is raised and none is."""
        begin = self.file.size
        # It may have to be read, and nothing may fail once all is written.
        self._greatest = self.greatest_timestamp
        self.file.append(run.data)
        ends = [*run.positions[1:], len(run.data)]
        for slot, position in enumerate(run.positions):
            last_offset = offsets[slot + 1] - 1
            size, timestamp = ends[slot] - position, run.heads[slot][1]
            self.note_batch(begin + position, size, offsets[slot], last_offset, timestamp)

    def note_batch(
        self, position: int, size: int, base_offset: int, last_offset: int, max_timestamp: int
    ) -> None:
        """Index a batch that was written at `position`."""
        greatest = self._greatest
        if greatest is None:
            greatest = self.greatest_timestamp
        if max_timestamp > greatest[0]:
            self._greatest = TimeEntry(max_timestamp, last_offset)
        if not position:
            self._first_batch_timestamp = max_timestamp
        recent = self._recent_last
        if not recent:
            self._recent_floor = base_offset
        elif len(recent) >= _RECENT_BATCHES:
            self._forget_half_of_recent()
        recent.append(last_offset)
        self._recent_positions.append(position)
        if self._bytes_since_index_entry > self.index_interval_bytes:
            self._add_index_entry(last_offset, position)
        self._bytes_since_index_entry += size

    def _add_index_entry(self, last_offset: int, position: int) -> None:
        try:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(*self.greatest_timestamp)
        except OSError as error:  # the log is right without it; the next batch tries again
            logger.warning("index entry not written path=%s error=%s", self.offset_index.path, error)
            return
        self._bytes_since_index_entry = 0

    def _forget_half_of_recent(self) -> None:
        half = len(self._recent_last) // 2
        self._recent_floor = self._recent_last[half - 1] + 1
        del self._recent_last[:half]
        del self._recent_positions[:half]

    # ---- finding

    def find(self, offset: int, *, only_cached: bool = False) -> BatchPosition | None:
        """The first batch whose last offset is at or above `offset`; None if the segment ends before. Raises
        NotInMemory if only what is in memory is to be looked at."""
        recent = self._recent_last
        if recent and offset >= self._recent_floor:
            slot = bisect_left(recent, offset)
            if slot == len(recent):
                return None
            positions = self._recent_positions
            position = positions[slot]
            slot += 1
            end = positions[slot] if slot < len(positions) else self.file.size
            return BatchPosition(position, end - position)
        if only_cached:
            self.offset_index.be_in_memory()
        entry_offset, position = self.offset_index.lookup(offset)
        file = self.file
        read = file.read_cached if only_cached else file.read
        chunk = read(position, _SCAN_BYTES)
        if position and not self._is_batch_of_entry(chunk, entry_offset, position):
            logger.warning("index entry is damaged and not used path=%s", self.offset_index.path)
            position, chunk = 0, read(0, _SCAN_BYTES)
        return self._scan(offset, position, chunk, read)

    def _is_batch_of_entry(self, chunk: bytes, offset: int, position: int) -> bool:
        """Whether an index entry leads to a batch that may be the one it means. Nothing in an index is
        checksummed, and a wrong position would have us serve the middle of a batch as its beginning."""
        if len(chunk) < HEADER_SIZE:
            return False
        base_offset, length, delta = _unpack_offsets(chunk)
        return (
            chunk[MAGIC_POSITION] == MAGIC_V2
            and self.base_offset <= base_offset <= base_offset + delta <= offset
            and HEADER_SIZE <= length + LOG_OVERHEAD <= self.file.size - position
        )

    def _scan(self, offset: int, position: int, chunk: bytes, read: Read) -> BatchPosition | None:
        """Walk the headers from `position`, where `chunk` was read."""
        file = self.file
        end = file.size
        start = position
        while position + HEADER_SIZE <= end:
            at = position - start
            if not 0 <= at <= len(chunk) - _OFFSETS.size:
                try:
                    chunk = read(position, _SCAN_BYTES)
                except NotInMemory as missing:
                    # The rest of the way is walked in a thread, not by who looks again from its beginning at each step.
                    walk = partial(self._scan, offset, position, b"", file.read)
                    raise NotInMemory(missing.place, walk) from None
                start, at = position, 0
            base_offset, length, delta = _unpack_offsets(chunk, at)
            if base_offset + delta >= offset:
                return BatchPosition(position, length + LOG_OVERHEAD)
            if length <= 0:
                raise CorruptBatch(f"{file.path} is damaged at byte {position}")
            position += length + LOG_OVERHEAD
        return None

    def read_batches(
        self, position: int, end: int | None = None, *, only_cached: bool = False
    ) -> Iterator[tuple[int, BatchView]]:
        """(position, view) of each whole batch from `position`; CorruptBatch where no batch can begin. Raises
        NotInMemory if only what is in memory is to be looked at."""
        stop = self.file.size if end is None else end
        chunk = memoryview(b"")
        start = position
        while position < stop:
            at = position - start
            size = batch_size_at(chunk, at, len(chunk))
            if size == 0 or at + size > len(chunk):
                if size > stop - position:
                    return
                wanted = max(size, min(_READ_BYTES, stop - position))
                read = self.file.read_cached if only_cached else self.read_fully
                chunk = memoryview(read(position, wanted))
                start, at = position, 0
                size = batch_size_at(chunk, 0, len(chunk))
                if size == 0 or size > stop - position:
                    return
                if size > len(chunk):
                    continue
            yield position, BatchView(chunk, at)
            position += size

    def read_headers(self, position: int, end: int) -> Iterator[BatchView]:
        """The batches in [position, end) by their headers alone: records and checksums are not there."""
        file = self.file
        chunk = memoryview(b"")
        start = 0
        while position + HEADER_SIZE <= end:
            at = position - start
            if not 0 <= at <= len(chunk) - HEADER_SIZE:
                chunk = memoryview(file.read(position, _SCAN_BYTES))
                start, at = position, 0
            view = BatchView(chunk, at)
            yield view
            position += view.size_in_bytes

    def read_fully(self, position: int, length: int) -> bytes:
        """`length` bytes from `position`, less only if the file ends before."""
        data = self.file.read(position, length)
        while 0 < len(data) < length and (more := self.file.read(position + len(data), length - len(data))):
            data += more
        return data

    def next_offset(self) -> tuple[int, int]:
        """The offset after the last whole batch, and the position where that batch ends."""
        offset, end = self.base_offset, self.offset_index.last_entry[1]
        size = self.file.size
        for view in self.read_headers(end, size):
            if (
                view.magic != MAGIC_V2
                or not SMALLEST_BATCH_LENGTH <= view.batch_length <= size - end - LOG_OVERHEAD
            ):
                break
            offset, end = view.next_offset, end + view.size_in_bytes
        return offset, end

    # ---- changing as a whole

    def become_inactive(self) -> None:
        """The segment takes no more batches: complete the time index, cut what was preallocated."""
        self.time_index.maybe_append(*self.greatest_timestamp)
        self.offset_index.trim()
        self.time_index.trim()
        self.offset_index.release()
        self.time_index.release()
        self.file.truncate(self.file.size)
        self._recent_last = []
        self._recent_positions = []

    def truncate_to(self, offset: int) -> int:
        """Remove the batches that hold `offset` or anything beyond it; returns where the segment now ends,
        which is before `offset` if that lies inside a batch."""
        found = self.find(offset)
        if found is not None:
            [base_offset] = _unpack_base_offset(self.file.read(found.position, 8))
            offset = min(offset, base_offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.offset_index.reopen_for_append()
        self.time_index.reopen_for_append()
        if found is not None:
            self.file.truncate(found.position)
        self._recent_last = []
        self._recent_positions = []
        self._bytes_since_index_entry = 0
        if not self.file.size:
            self._first_batch_timestamp = None
        greatest = self.time_index.last_entry
        for _, view in self.read_batches(self.offset_index.lookup(greatest.offset)[1]):
            if view.max_timestamp > greatest.timestamp:
                greatest = TimeEntry(view.max_timestamp, view.last_offset)
        self._greatest = greatest
        return offset

    def reset_indexes(self) -> None:
        """Before recovery: all indexes empty."""
        self.offset_index.reset()
        self.time_index.reset()
        self.txn_index.reset()
        self._greatest = TimeEntry(NO_TIMESTAMP, self.base_offset)
        self._bytes_since_index_entry = 0

    def take_scanned(
        self,
        offset_entries: list[tuple[int, int]],
        time_entries: list[tuple[int, int]],
        greatest: tuple[int, int],
        first_timestamp: int | None,
        bytes_since_index_entry: int,
    ) -> None:
        """After `reset_indexes`: what the batches of the segment say (see scan)."""
        self.offset_index.append_all(offset_entries)
        self.time_index.append_all(time_entries)
        self._greatest = TimeEntry(*greatest)
        self._first_batch_timestamp = first_timestamp
        self._bytes_since_index_entry = bytes_since_index_entry

    def flush(self) -> None:
        """fsync everything; may run in a worker thread while the log goes on. A segment that was deleted
        meanwhile needs no flushing."""
        file = self.file
        if file.fd >= 0:
            file.fsync()
        self.offset_index.flush()
        self.time_index.flush()
        self.txn_index.flush()

    def close(self) -> None:
        """Complete and trim the files and let go of them. Slices handed out stay readable."""
        if self._greatest is not None:
            self.time_index.maybe_append(*self._greatest)
        self.offset_index.close()
        self.time_index.close()
        self.file.truncate(self.file.size)
        self.file = closed_log_file(self.file)

    def release(self) -> None:
        """Let go of the files without writing to them."""
        self.offset_index.release()
        self.time_index.release()
        self.file = closed_log_file(self.file)

    def mark_deleted(self) -> list[str]:
        """Rename the files so that a crash does not bring them back; returns the files to remove."""
        fs = self.file.fs
        paths = []
        self.offset_index.release()
        self.time_index.release()
        for path in (self.file.path, self.offset_index.path, self.time_index.path, self.txn_index.path):
            try:
                fs.rename(path, path + DELETED_SUFFIX)
            except FileNotFoundError:
                continue
            paths.append(path + DELETED_SUFFIX)
        self.file = closed_log_file(self.file)
        return paths

    def __repr__(self) -> str:
        return f"Segment(base_offset={self.base_offset}, size={self.size})"


def base_offset_of(segment: Segment) -> int:
    return segment.base_offset


def _length_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
