"""The segment that cleaning writes: its files end with `.cleaned` until they are swapped in.

Batches come many at a time, and their index entries are written as many: an entry is added once more than
index.interval.bytes came since the last one, as when a log is written for the first time.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from types import ModuleType

from ottla.log_store.compaction.batch_filter import KeptBatch
from ottla.log_store.compaction.job import CleaningJob
from ottla.log_store.compaction.throttle import Throttle
from ottla.log_store.files import (
    CLEANED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    FileSystem,
    offset_name,
    unlink_if_there,
)
from ottla.log_store.segment import Segment
from ottla.wire.records.header import MAX_TIMESTAMP_POSITION, NO_TIMESTAMP

_unpack_max_timestamp = struct.Struct(">q").unpack_from


class CleanedSegment:
    """The replacement of the segments that begin with the one at `base_offset`."""

    def __init__(self, fs: FileSystem, job: CleaningJob, base_offset: int, throttle: Throttle) -> None:
        remove_cleaned_files(fs, job.directory, base_offset)
        self.segment = Segment.create(
            fs,
            job.directory,
            base_offset,
            index_bytes=job.segment_index_bytes,
            now_ms=job.now_ms,
            suffix=CLEANED_SUFFIX,
        )
        self._throttle = throttle
        self._interval_bytes = job.index_interval_bytes
        self._bytes_since_entry = 0
        self._greatest = (NO_TIMESTAMP, base_offset)
        self._indexed_timestamp = NO_TIMESTAMP
        self._first_timestamp: int | None = None

    def write(self, batches: Sequence[KeptBatch]) -> None:
        """Append batches."""
        if not batches:
            return
        segment = self.segment
        position = segment.size
        self._append(b"".join([batch[0] for batch in batches]), batches[0][2])
        base_offset = segment.base_offset
        interval, since = self._interval_bytes, self._bytes_since_entry
        greatest, greatest_offset = self._greatest
        indexed = self._indexed_timestamp
        offset_entries, time_entries = [], []
        for kept, last_offset, max_timestamp in batches:
            if max_timestamp > greatest:
                greatest, greatest_offset = max_timestamp, last_offset
            if since > interval:
                offset_entries.append((last_offset - base_offset, position))
                if greatest > indexed:
                    time_entries.append((greatest, greatest_offset - base_offset))
                    indexed = greatest
                since = 0
            size = len(kept)
            since += size
            position += size
        segment.offset_index.append_all(offset_entries)
        segment.time_index.append_all(time_entries)
        self._bytes_since_entry, self._indexed_timestamp = since, indexed
        self._greatest = greatest, greatest_offset

    def write_compiled(self, data: bytes, compiled: ModuleType) -> None:
        """The same for batches that lie one behind the other."""
        if not data:
            return
        segment = self.segment
        position = segment.size
        self._append(data, _unpack_max_timestamp(data, MAX_TIMESTAMP_POSITION)[0])
        offset_entries, time_entries, since, greatest, greatest_offset, indexed = compiled.index_entries(
            data,
            segment.base_offset,
            position,
            self._interval_bytes,
            self._bytes_since_entry,
            *self._greatest,
            self._indexed_timestamp,
        )
        segment.offset_index.append_packed(offset_entries)
        segment.time_index.append_packed(time_entries)
        self._bytes_since_entry, self._indexed_timestamp = since, indexed
        self._greatest = greatest, greatest_offset

    def _append(self, data: bytes, first_timestamp: int) -> None:
        if self._first_timestamp is None:
            self._first_timestamp = first_timestamp
        self._throttle.spend(len(data))
        self.segment.file.append(data)

    def finish(self, modified_ns: int) -> int:
        """Bring it to the disk and let go of it; returns its size. `modified_ns` is what its files tell as the time
        they were last written: retention goes by it where records have no timestamps."""
        segment = self.segment
        segment.take_scanned([], [], self._greatest, self._first_timestamp, self._bytes_since_entry)
        segment.become_inactive()
        segment.flush()
        os.utime(segment.file.path, ns=(modified_ns, modified_ns))
        segment.release()
        return segment.size


def remove_cleaned_files(fs: FileSystem, directory: str, base_offset: int) -> None:
    """Remove what an earlier round left half done."""
    stem = os.path.join(directory, offset_name(base_offset))
    for suffix in (*INDEX_SUFFIXES, LOG_SUFFIX):
        unlink_if_there(fs, stem + suffix + CLEANED_SUFFIX)
