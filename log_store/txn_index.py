"""The transaction index of a segment: the aborted transactions whose marker lies in it (KIP-98).

    entry, 34 bytes:  int16 version = 0,  int64 producer_id,  int64 first_offset,
                      int64 last_offset (the abort marker),  int64 last_stable_offset when it was written

The file exists once there is an entry. Entries come in the order of their markers; a transaction may have
begun in an earlier segment.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from ottla.log_store.files import FileSystem, fsync_path, unlink_if_there, write_fully
from ottla.log_store.index_file import CorruptIndex

_ENTRY = struct.Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size
VERSION = 0


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


_last_offset = attrgetter("last_offset")


class TxnIndex:
    """Aborted transactions of one segment, read from the file at first use and then kept."""

    __slots__ = ("_entries", "base_offset", "fs", "path")

    def __init__(self, fs: FileSystem, path: str, base_offset: int, *, exists: bool) -> None:
        self.fs = fs
        self.path = path
        self.base_offset = base_offset
        self._entries: list[AbortedTxn] | None = None if exists else []

    @property
    def entries(self) -> list[AbortedTxn]:
        if self._entries is None:
            self._entries = self._load()
        return self._entries

    @property
    def has_entries(self) -> bool:
        """Whether a transaction was aborted here; a file that nobody has read yet is taken to say so."""
        return self._entries is None or bool(self._entries)

    @contextmanager
    def appending(self) -> Iterator[Callable[[AbortedTxn], None]]:
        """Append with what this gives. The file is open by then, so that nothing but the disk itself can refuse."""
        entries = self.entries
        fd = self.fs.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)

        def append(txn: AbortedTxn) -> None:
            if entries and txn.last_offset <= entries[-1].last_offset:
                raise ValueError(f"marker at {txn.last_offset} does not follow {entries[-1].last_offset}")
            write_fully(self.fs, fd, _ENTRY.pack(VERSION, *txn), len(entries) * ENTRY_BYTES)
            entries.append(txn)

        try:
            yield append
        finally:
            self.fs.close(fd)

    def append(self, txn: AbortedTxn) -> None:
        with self.appending() as append:
            append(txn)

    def collect(self, fetch_offset: int, upper_bound_offset: int) -> tuple[list[AbortedTxn], bool]:
        """The transactions that touch [fetch_offset, upper_bound_offset), and whether these are all there
        can be; if not, the search goes on in the next segment."""
        found = []
        entries = self.entries
        first = bisect_left(entries, fetch_offset, key=_last_offset)  # there may be very many before
        for txn in islice(entries, first, None):
            if txn.first_offset < upper_bound_offset:
                found.append(txn)
            if txn.last_stable_offset >= upper_bound_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker is at `offset` or beyond."""
        kept = [txn for txn in self.entries if txn.last_offset < offset]
        if len(kept) != len(self.entries):
            self._write_length(len(kept) * ENTRY_BYTES)
            self._entries = kept

    def reset(self) -> None:
        if self._entries is None or self._entries:
            self._write_length(0)
        self._entries = []

    def check(self) -> None:
        """CorruptIndex if an entry cannot belong to this segment."""
        for txn in self.entries:
            if txn.last_offset < self.base_offset:
                raise CorruptIndex(f"{self.path} has a marker at {txn.last_offset}, below its base")

    def flush(self) -> None:
        if self._entries is None or self._entries:
            fsync_path(self.fs, self.path)

    def rename(self, path: str) -> None:
        if os.path.exists(self.path):
            self.fs.rename(self.path, path)
        self.path = path

    def delete(self) -> None:
        unlink_if_there(self.fs, self.path)

    def _load(self) -> list[AbortedTxn]:
        fd = self.fs.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = self.fs.pread(fd, os.fstat(fd).st_size, 0)
        finally:
            self.fs.close(fd)
        entries = []
        for version, *fields in _ENTRY.iter_unpack(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES]):
            if version != VERSION:
                raise CorruptIndex(f"{self.path} has an entry of version {version}")
            entries.append(AbortedTxn(*fields))
        return entries

    def _write_length(self, length: int) -> None:
        fd = self.fs.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self.fs.ftruncate(fd, length)
        finally:
            self.fs.close(fd)
