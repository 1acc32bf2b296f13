"""The time index of a segment: from a timestamp to the offset to begin looking at.

    entry, 12 bytes:  int64 timestamp,  int32 offset - base_offset

An entry (t, o) says: t is the greatest timestamp up to o, and it is in the batch that ends at o; every record
with a greater timestamp comes after o. Both columns ascend. An entry is added together with each one of the
offset index if the greatest timestamp has grown since, and one more when the segment is rolled or closed, for
which the last slot is kept free.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ottla.log_store.files import FileSystem
from ottla.log_store.index_file import CorruptIndex, IndexFile

NO_TIMESTAMP = -1

_ENTRY = struct.Struct(">qi")
_unpack = _ENTRY.unpack_from
_unpack_timestamp = struct.Struct(">q").unpack_from


class TimeEntry(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex(IndexFile):
    """Entries of (timestamp, offset)."""

    __slots__ = ("_last",)

    ENTRY = _ENTRY

    def __init__(self, fs: FileSystem, path: str, base_offset: int, max_bytes: int, length: int) -> None:
        super().__init__(fs, path, base_offset, max_bytes, length)
        self._last: TimeEntry | None = None if self.entries else TimeEntry(NO_TIMESTAMP, base_offset)

    @property
    def is_full(self) -> bool:
        return self.entries >= self.max_entries - 1

    @property
    def last_entry(self) -> TimeEntry:
        """The last entry; (-1, base_offset) if there is none."""
        last = self._last
        if last is None:
            raw = self._read(self.entries - 1)
            timestamp, relative = _unpack(raw)
            last = self._last = TimeEntry(timestamp, self.base_offset + relative)
        return last

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the greatest timestamp is greater than that of the last entry."""
        last = self.last_entry
        if timestamp <= last.timestamp:
            return
        if self.entries and offset < last.offset:
            raise ValueError(f"offset {offset} does not follow {last.offset} in {self.path}")
        self._append(_ENTRY.pack(timestamp, offset - self.base_offset))
        self._last = TimeEntry(timestamp, offset)

    def append_all(self, entries: list[tuple[int, int]]) -> None:
        """Add what recovery found, each entry a timestamp and an offset relative to the base."""
        self.append_packed(b"".join([_ENTRY.pack(*entry) for entry in entries]))

    def append_packed(self, entries: bytes) -> None:
        """The same for entries as they lie in the file."""
        if entries:
            self._append_all(entries)
            timestamp, relative = _ENTRY.unpack(entries[-_ENTRY.size :])
            self._last = TimeEntry(timestamp, self.base_offset + relative)

    def lookup(self, timestamp: int) -> TimeEntry:
        """The last entry at or below `timestamp`; (-1, base_offset) if there is none."""
        if self.entries:
            last = self.last_entry
            if timestamp >= last.timestamp:
                return last
            mapped = self._mapped()
            low, high = 0, self.entries
            while low < high:
                middle = (low + high) >> 1
                if _unpack_timestamp(mapped, middle * 12)[0] <= timestamp:
                    low = middle + 1
                else:
                    high = middle
            if low:
                return self.entry(low - 1)
        return TimeEntry(NO_TIMESTAMP, self.base_offset)

    def entry(self, slot: int) -> TimeEntry:
        mapped = self._mapped()
        if not 0 <= slot < self.entries:
            raise IndexError(slot)
        timestamp, relative = _unpack(mapped, slot * 12)
        return TimeEntry(timestamp, self.base_offset + relative)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and beyond."""
        self._have_all_in_file()
        keep = self.entries
        while keep and self.entry(keep - 1).offset >= offset:
            keep -= 1
        self._truncate_entries(keep)

    def check(self) -> None:
        """CorruptIndex if the file cannot be an index of this segment."""
        if self._length % 12:
            raise CorruptIndex(f"{self.path} has {self._length} bytes, not a multiple of 12")
        if self.entries:
            last = self.last_entry
            if last.timestamp < _unpack_timestamp(self._read(0))[0] or last.offset < self.base_offset:
                raise CorruptIndex(f"{self.path} does not ascend")

    def _truncate_entries(self, entries: int) -> None:
        super()._truncate_entries(entries)
        self._last = None if self.entries else TimeEntry(NO_TIMESTAMP, self.base_offset)
