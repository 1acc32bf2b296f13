"""What the offset and the time index share: a file of fixed-size entries, written once, searched by halving.

The file of the active segment is made as long as segment.index.bytes allows (rounded down to whole entries)
without taking blocks on the disk, and cut to its entries when the segment is rolled or closed, as Kafka does;
after a clean stop the length of the file therefore tells how many entries it has. Nothing is checksummed:
after a crash the index is made anew from the log.

Entries are written with pwrite and read through a read-only map of the file. Kafka writes through the map,
and a full disk then kills the process by SIGBUS; a pwrite fails with an OSError instead. Descriptor and map
are made at first use, so that an idle partition holds neither.

A pwrite for each entry would cost more than all else that is done for a small batch, so the last entries of an
active segment are held back, until there are some dozen, somebody searches among them, or the segment is rolled or
closed. A crash loses nothing by it, since that segment is read again; nor does a disk that refuses them when they are
searched, since an index with less in it is right as well. Searches may be of worker threads while the log goes on.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import ClassVar

from ottla.log_store.files import FileSystem, fsync_path, unlink_if_there, write_fully
from ottla.log_store.page_cache import NotInMemory

logger = logging.getLogger("ottla.log_store")

LARGEST_RELATIVE_OFFSET = 0x7FFFFFFF
_HELD_BACK_BYTES = 512
_READ_BYTES = 64 * 1024
_IN_MEMORY_SECONDS = 1.0  # what was there just now is not given up yet


class CorruptIndex(Exception):
    """An index file that cannot be what was written; it is rebuilt."""


class IndexFile:
    """Fixed-size entries of one segment; subclasses know what is in an entry."""

    __slots__ = (
        "_fd",
        "_held_back",
        "_in_memory_until",
        "_length",
        "_lock",
        "_map",
        "base_offset",
        "entries",
        "fs",
        "max_bytes",
        "max_entries",
        "path",
    )

    ENTRY: ClassVar[struct.Struct]

    def __init__(self, fs: FileSystem, path: str, base_offset: int, max_bytes: int, length: int) -> None:
        """An index over the file at `path`, which has `length` bytes, all of them entries."""
        self.fs = fs
        self.path = path
        self.base_offset = base_offset
        self.max_bytes = max_bytes
        self._length = length
        self._held_back = b""  # the last of the entries, which are not in the file yet
        self._lock: threading.Lock | None = None  # of what is held back, from when anything is
        self._fd = -1
        self._map: mmap.mmap | None = None
        self._in_memory_until = 0.0
        self.entries = length // self.ENTRY.size
        self.max_entries = max(self.entries, max_bytes // self.ENTRY.size)

    def preallocate(self) -> None:
        """Give the file its full length, sparse, making it if it is not there; never less than it needs, even
        if segment.index.bytes has become smaller since."""
        size = self.ENTRY.size
        self._resize(max(self.entries + 1, self.max_bytes // size) * size)

    def trim(self) -> None:
        """Cut the file to its entries: the segment takes no more."""
        self._write_held_back()
        self._resize(self.entries * self.ENTRY.size)
        self.max_entries = self.entries

    def reset(self) -> None:
        """Forget every entry and make room for as many as allowed."""
        self._truncate_entries(0)
        self._resize(0)  # also drops what stood in the file, as a later unclean stop must not see it
        self.preallocate()
        self.max_entries = self.max_bytes // self.ENTRY.size

    def reopen_for_append(self) -> None:
        """The segment is the active one again: allow as many entries as configured."""
        self.max_entries = max(self.entries, self.max_bytes // self.ENTRY.size)

    def flush(self) -> None:
        """fsync; of the file by name, so that a worker thread may do it while the log goes on."""
        fsync_path(self.fs, self.path)

    def close(self) -> None:
        """Trim and let go of the file."""
        self._write_held_back()
        if self._length != self.entries * self.ENTRY.size or not os.path.exists(self.path):
            self.trim()
        self.release()

    def release(self) -> None:
        """Let go of descriptor and map; they come back at the next use."""
        if self._fd >= 0:
            self.fs.close(self._fd)
            self._fd = -1
        self._unmap()

    def rename(self, path: str) -> None:
        if os.path.exists(self.path):
            self.fs.rename(self.path, path)
        self.path = path

    def delete(self) -> None:
        self.release()
        self._held_back = b""
        unlink_if_there(self.fs, self.path)

    def _append(self, entry: bytes) -> None:
        if self._length < (self.entries + 1) * self.ENTRY.size:
            self.preallocate()
        if self._lock is None:  # nobody else has anything to do with what is held back before
            self._lock = threading.Lock()
        with self._lock:
            if len(self._held_back) >= _HELD_BACK_BYTES:
                self._write()
            self._held_back += entry
            self.entries += 1

    def _write(self) -> None:
        """Write what is held back, under its lock."""
        position = self.entries * self.ENTRY.size - len(self._held_back)
        write_fully(self.fs, self._descriptor(), self._held_back, position)
        self._held_back = b""

    def _write_held_back(self) -> None:
        if self._lock is not None:
            with self._lock:
                if self._held_back:
                    self._write()

    def _have_all_in_file(self) -> None:
        """So that entries can be read: what the disk does not take is forgotten. To be called before anybody asks how
        many there are."""
        if self._lock is None or not self._held_back:
            return
        with self._lock:
            if not self._held_back:
                return
            try:
                self._write()
            except OSError as error:
                logger.warning("index entries not written path=%s error=%s", self.path, error)
                kept = self.entries - len(self._held_back) // self.ENTRY.size
                self._held_back = b""
                self._truncate_entries(kept)

    def _append_all(self, entries: bytes) -> None:
        """Many entries in one write, made by recovery."""
        self._write_held_back()
        size = self.ENTRY.size
        needed = self.entries * size + len(entries)
        if self._length < needed:
            self._resize(needed)
        with self._any_descriptor() as fd:
            write_fully(self.fs, fd, entries, self.entries * size)
        self.entries = needed // size

    def _truncate_entries(self, entries: int) -> None:
        self._have_all_in_file()
        self.entries = min(entries, self.entries)

    def _mapped(self) -> mmap.mmap:
        self._have_all_in_file()
        mapped = self._map
        if mapped is None:
            with self._any_descriptor() as fd:  # the map keeps a descriptor of its own
                mapped = self._map = mmap.mmap(fd, self._length, prot=mmap.PROT_READ)
        return mapped

    def _unmap(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None

    def _read(self, slot: int) -> bytes:
        """The bytes of one entry, without mapping the file."""
        self._have_all_in_file()
        size = self.ENTRY.size
        with self._any_descriptor() as fd:
            return self.fs.pread(fd, size, slot * size)

    def be_in_memory(self) -> None:
        """Before a search that must not wait for the disk. Raises NotInMemory."""
        if not self.entries or monotonic() < self._in_memory_until:
            return
        with self._any_descriptor() as fd:
            if not self.fs.is_in_memory(fd, 0, self._written_bytes):
                raise NotInMemory((self.path, 0), self._bring)
        self._in_memory_until = monotonic() + _IN_MEMORY_SECONDS

    def _bring(self) -> None:
        # In a thread, so the file may have been deleted meanwhile, and is not to be made again.
        fd = self.fs.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for position in range(0, self._written_bytes, _READ_BYTES):
                self.fs.pread(fd, _READ_BYTES, position)
        finally:
            self.fs.close(fd)

    @property
    def _written_bytes(self) -> int:
        return self.entries * self.ENTRY.size - len(self._held_back)

    def _resize(self, length: int) -> None:
        self._unmap()
        with self._any_descriptor() as fd:
            self.fs.ftruncate(fd, length)
        self._length = length

    def _descriptor(self) -> int:
        """The descriptor that stays open, for appends."""
        if self._fd < 0:
            self._fd = self._open()
        return self._fd

    @contextmanager
    def _any_descriptor(self) -> Iterator[int]:
        """The open descriptor, or one for this moment only."""
        if self._fd >= 0:
            yield self._fd
            return
        fd = self._open()
        try:
            yield fd
        finally:
            self.fs.close(fd)

    def _open(self) -> int:
        return self.fs.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.release()
