"""The segment that cleaning writes: its files end with `.cleaned` until they are swapped in.

Batches come many at a time, and their index entries are written as many: an entry is added once more than
index.interval.bytes came since the last one, as when a log is written for the first time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

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
from ottla.wire.records.header import NO_TIMESTAMP


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
        if self._first_timestamp is None:
            self._first_timestamp = batches[0][2]
        position = segment.size
        data = b"".join([batch[0] for batch in batches])
        self._throttle.spend(len(data))
        segment.file.append(data)
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
