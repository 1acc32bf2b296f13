"""Which leader epoch wrote which offsets (KIP-101): the file `leader-epoch-checkpoint` and its cache.

A checkpoint file (see checkpoints) with a line `epoch start_offset` for each epoch that wrote to this
partition. Both columns ascend. Followers and consumers use it to find where two logs part.

A new epoch is written down at once but not fsynced, or only noted until it has something to tell (`begin`):
what a crash loses comes back when recovery reads the batches after the recovery point. `flush` makes it
durable.

Epochs before the start of the log stay in the file until it is written for another reason: whoever loads it cuts
them off again. To replace a file frees the blocks of the old one, for which some file systems wait for the disk,
and records of very many partitions may be deleted at once.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from typing import Final, NamedTuple

from ottla.log_store.checkpoints import (
    CorruptCheckpoint,
    checkpoint_text,
    read_checkpoint,
    write_checkpoint,
)
from ottla.log_store.files import FileSystem, fsync_path, write_fully

FILE_NAME: Final = "leader-epoch-checkpoint"
UNDEFINED_EPOCH: Final = -1
UNDEFINED_EPOCH_OFFSET: Final = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """The ascending list of (epoch, start offset) of one partition."""

    __slots__ = ("_dirty", "_is_behind", "_writing", "entries", "fs", "is_unwritten", "latest_epoch", "path")

    def __init__(self, fs: FileSystem, path: str) -> None:
        self.fs = fs
        self.path = path
        self.entries: list[EpochEntry] = []
        self.latest_epoch = UNDEFINED_EPOCH
        self._dirty = False
        self._is_behind = False  # the file begins before the log
        self.is_unwritten = False
        self._writing = threading.Lock()  # a flush in a worker thread may write too

    def create(self, first_epoch: int, start_offset: int) -> None:
        """Make the file in a new directory, with the epoch that begins there if there is one: the first append need
        not write it then. It is written in place, for what is cut off in the middle of it is a log without data."""
        if first_epoch >= 0:
            self._put(EpochEntry(first_epoch, start_offset))
        fd = self.fs.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if self.entries:
                write_fully(self.fs, fd, checkpoint_text(self._lines()).encode(), 0)
                self._dirty = True
        finally:
            self.fs.close(fd)

    def load(self) -> None:
        """Read the file; CorruptCheckpoint if it makes no sense."""
        try:
            loaded = [EpochEntry(int(epoch), int(start)) for epoch, start in read_checkpoint(self.path)]
        except ValueError as error:
            raise CorruptCheckpoint(f"{self.path}: {error}") from error
        self._replace([])
        for entry in loaded:
            self._put(entry)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Epoch `epoch` begins at `start_offset`, unless it is known to have begun before."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} at offset {start_offset}")
        if self._put(EpochEntry(epoch, start_offset)) or self.is_unwritten:
            self._write()

    def begin(self, epoch: int, start_offset: int) -> None:
        """As `assign`, but leave the writing to the first append or flush: a leader that has written nothing yet
        needs no line in the file, and a start would write one for each partition."""
        if self._put(EpochEntry(epoch, start_offset)):
            self.is_unwritten = True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(the largest epoch at or below `epoch` that wrote here, the offset where it ended); (-1, -1) if
        that cannot be told."""
        entries = self.entries
        if epoch == UNDEFINED_EPOCH or not entries or epoch > self.latest_epoch:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        higher = bisect_right(entries, epoch, key=_epoch_of)
        found = entries[higher - 1].epoch if higher else epoch
        return found, entries[higher].start_offset

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch that wrote `offset`."""
        position = bisect_right(self.entries, offset, key=_start_of)
        return self.entries[position - 1].epoch if position else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at `end_offset` or beyond."""
        kept = [entry for entry in self.entries if entry.start_offset < end_offset]
        if len(kept) != len(self.entries):
            self._replace(kept)
            self._write()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs that ended before `start_offset`; the one it lies in now begins there."""
        position = bisect_right(self.entries, start_offset, key=_start_of)
        if not position:
            return
        first = self.entries[position - 1]
        if position == 1 and first.start_offset == start_offset:
            return
        self._replace([EpochEntry(first.epoch, start_offset), *self.entries[position:]])
        self._is_behind = True

    def clear(self) -> None:
        self._replace([])
        self._write()

    def _write(self) -> None:
        with self._writing:
            self.is_unwritten = self._is_behind = False
            try:
                write_checkpoint(self.fs, self.path, self._lines(), sync=False)
            except OSError:
                self.is_unwritten = True  # what was refused may be taken the next time
                raise
            self._dirty = True

    def _lines(self) -> list[str]:
        return [f"{epoch} {start_offset}" for epoch, start_offset in self.entries]

    def flush(self) -> bool:
        """Make the file durable if it changed since; may run in a worker thread. If it did (True), its name
        was put in place by a rename that the directory has yet to keep."""
        if self.is_unwritten or self._is_behind:
            self._write()
        if not self._dirty:
            return False
        self._dirty = False
        try:
            fsync_path(self.fs, self.path)
        except OSError:
            self._dirty = True
            raise
        return True

    def _put(self, entry: EpochEntry) -> bool:
        entries = self.entries
        if entries and entry.epoch == entries[-1].epoch and entry.start_offset >= entries[-1].start_offset:
            return False
        kept = len(entries)
        while kept and (
            entries[kept - 1].epoch >= entry.epoch or entries[kept - 1].start_offset >= entry.start_offset
        ):
            kept -= 1
        self._replace([*entries[:kept], entry])
        return True

    def _replace(self, entries: list[EpochEntry]) -> None:
        self.entries = entries
        self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH


def _epoch_of(entry: EpochEntry) -> int:
    return entry.epoch


def _start_of(entry: EpochEntry) -> int:
    return entry.start_offset
