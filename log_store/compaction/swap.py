"""Putting a cleaned segment in the place of those it was made from, so that a crash at any point loses nothing.

    1  `.cleaned` -> `.swap`        all files of the new segment; then the directory is fsynced
    2  the log reads from the new segment
    3  old files -> `.deleted`      of all replaced segments but the first; then the directory is fsynced
    4  old files -> `.deleted`      of the first; then `.swap` -> final name, the .log first

Until 1 is done a `.cleaned` file is left, and the next start removes what was made. From then on the next start
finishes the work: what a `.swap` covers goes, and it gets its name. Steps 2 and 4 are made by the thread that
appends and reads, and are short; 1 and 3 may be made by a worker. Readers that hold a slice of an old file read on.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ottla.log_store.deletion import DeletedFile, remove_segments
from ottla.log_store.files import (
    CLEANED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    FileSystem,
    fsync_path,
    offset_name,
    unlink_if_there,
)
from ottla.log_store.segment import Segment

if TYPE_CHECKING:
    from ottla.log_store.log import Log


class SegmentSwap:
    """The replacement of neighbouring segments of a log by the one that lies ready as `.cleaned` files. Call the four
    steps in their order; False from `install` means that the log has changed and nothing was done."""

    def __init__(self, log: Log, replaced: list[int]) -> None:
        self.log = log
        self.replaced = replaced
        self._directory = log.directory  # that of a deleted log has another name
        self._old: list[Segment] = []
        self._new: Segment

    def prepare(self) -> None:
        """Make the new segment complete; may run in a worker thread."""
        _rename_files(self.log.fs, self._directory, self.replaced[0], CLEANED_SUFFIX, SWAP_SUFFIX)
        fsync_path(self.log.fs, self._directory)

    def install(self, now_ms: int) -> bool:
        """Let the log read from the new segment, if the old ones are still in it."""
        log = self.log
        first = log.slot_of(self.replaced[0])
        last = first + len(self.replaced)
        old = log.segments[first:last]
        if (
            log.is_closed
            or [segment.base_offset for segment in old] != self.replaced
            or last >= len(log.segments)
        ):
            self._discard()
            return False
        self._new = Segment.open(
            log.fs,
            self._directory,
            self.replaced[0],
            index_bytes=log.config.segment_index_bytes,
            now_ms=now_ms,
            suffix=SWAP_SUFFIX,
        )
        self._old = old
        log.segments = [*log.segments[:first], self._new, *log.segments[last:]]
        return True

    def retire(self) -> None:
        """Set the files of the replaced segments aside, those of the first excepted; may run in a worker thread."""
        if len(self._old) > 1:
            remove_segments(self.log, self._old[1:])
            fsync_path(self.log.fs, self._directory)

    def complete(self) -> None:
        """Give the new segment the names of the first one it replaces."""
        log = self.log
        if log.is_closed:  # its directory is on the way out
            return
        delay_ms = log.config.file_delete_delay_ms
        log.deleted_files += [DeletedFile(path, delay_ms) for path in self._old[0].mark_deleted()]
        log.names_changed = True
        base_offset = self.replaced[0]
        _rename_files(log.fs, self._directory, base_offset, SWAP_SUFFIX, "")
        stem = os.path.join(self._directory, offset_name(base_offset))
        self._new.file.path = stem + LOG_SUFFIX
        self._new.offset_index.path = stem + OFFSET_INDEX_SUFFIX
        self._new.time_index.path = stem + TIME_INDEX_SUFFIX
        self._new.txn_index.path = stem + TXN_INDEX_SUFFIX

    def _discard(self) -> None:
        """Undo `prepare`. The .log becomes `.cleaned` again first: as long as that is there, a start removes all."""
        fs = self.log.fs
        stem = os.path.join(self._directory, offset_name(self.replaced[0]))
        with contextlib.suppress(FileNotFoundError):  # as of a log whose directory was renamed
            fs.rename(stem + LOG_SUFFIX + SWAP_SUFFIX, stem + LOG_SUFFIX + CLEANED_SUFFIX)
            for suffix in INDEX_SUFFIXES:
                unlink_if_there(fs, stem + suffix + SWAP_SUFFIX)
            fs.unlink(stem + LOG_SUFFIX + CLEANED_SUFFIX)


def swap_segments(log: Log, replaced: list[int], now_ms: int) -> bool:
    """All four steps at once; False if the log has changed and the cleaned segment was thrown away."""
    swap = SegmentSwap(log, replaced)
    swap.prepare()
    if not swap.install(now_ms):
        return False
    swap.retire()
    swap.complete()
    return True


def _rename_files(fs: FileSystem, directory: str, base_offset: int, source: str, target: str) -> None:
    """Change the suffix of a segment's files, the .log first; there need not be a transaction index."""
    stem = os.path.join(directory, offset_name(base_offset))
    for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
        fs.rename(stem + suffix + source, stem + suffix + target)
    with contextlib.suppress(FileNotFoundError):
        fs.rename(stem + TXN_INDEX_SUFFIX + source, stem + TXN_INDEX_SUFFIX + target)
