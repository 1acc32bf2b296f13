"""The offset index of a segment: from an offset to where in the log file to begin looking.

    entry, 8 bytes:  int32 offset - base_offset,  int32 position in the .log file

Sparse: an entry is added once more than index.interval.bytes were appended since the last one. Its offset is
the LAST offset of the batch that begins at its position, and both columns ascend.
"""

from __future__ import annotations

import struct

from ottla.log_store.files import FileSystem
from ottla.log_store.index_file import LARGEST_RELATIVE_OFFSET, CorruptIndex, IndexFile

_ENTRY = struct.Struct(">ii")
_unpack = _ENTRY.unpack_from
_unpack_offset = struct.Struct(">i").unpack_from


class OffsetIndex(IndexFile):
    """Entries of (offset, position)."""

    __slots__ = ("_last",)

    ENTRY = _ENTRY

    def __init__(self, fs: FileSystem, path: str, base_offset: int, max_bytes: int, length: int) -> None:
        super().__init__(fs, path, base_offset, max_bytes, length)
        self._last: tuple[int, int] | None = None if self.entries else (base_offset, 0)

    @property
    def is_full(self) -> bool:
        return self.entries >= self.max_entries

    @property
    def last_entry(self) -> tuple[int, int]:
        """(offset, position) of the last entry; (base_offset, 0) if there is none."""
        last = self._last
        if last is None:
            raw = self._read(self.entries - 1)
            relative, position = _unpack(raw)
            last = self._last = (self.base_offset + relative, position)
        return last

    def append(self, offset: int, position: int) -> None:
        """Add the entry of the batch at `position` whose last offset is `offset`."""
        relative = offset - self.base_offset
        if self.entries and offset <= self.last_entry[0]:
            raise ValueError(f"offset {offset} does not follow {self.last_entry[0]} in {self.path}")
        if not 0 <= relative <= LARGEST_RELATIVE_OFFSET:
            raise ValueError(f"offset {offset} is out of the reach of {self.path}")
        self._append(_ENTRY.pack(relative, position))
        self._last = (offset, position)

    def append_all(self, entries: list[tuple[int, int]]) -> None:
        """Add what recovery found, each entry a last offset relative to the base and a position."""
        self.append_packed(b"".join([_ENTRY.pack(*entry) for entry in entries]))

    def append_packed(self, entries: bytes) -> None:
        """The same for entries as they lie in the file."""
        if entries:
            self._append_all(entries)
            relative, position = _ENTRY.unpack(entries[-_ENTRY.size :])
            self._last = (self.base_offset + relative, position)

    def lookup(self, offset: int) -> tuple[int, int]:
        """The last entry at or below `offset`, as (offset, position); (base_offset, 0) if there is none."""
        if not self.entries:
            return self.base_offset, 0
        last = self.last_entry
        if offset >= last[0]:
            return last
        slot = self._slot_at_or_below(offset)
        if slot < 0:
            return self.base_offset, 0
        return self.entry(slot)

    def entry(self, slot: int) -> tuple[int, int]:
        mapped = self._mapped()
        if not 0 <= slot < self.entries:
            raise IndexError(slot)
        relative, position = _unpack(mapped, slot * 8)
        return self.base_offset + relative, position

    def upper_bound_offset(self, position: int) -> int | None:
        """The offset of the first entry at or after a file position, or None if the index ends before."""
        if not self.entries:
            return None
        slot = self._entries_below(position)
        return self.entry(slot)[0] if slot < self.entries else None

    def position_before(self, position: int) -> int:
        """The position of the last entry at or before a file position; 0 if there is none."""
        slot = self._entries_below(position + 1) if self.entries else 0
        return self.entry(slot - 1)[1] if slot else 0

    def _entries_below(self, position: int) -> int:
        mapped = self._mapped()
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) >> 1
            if _unpack(mapped, middle << 3)[1] < position:
                low = middle + 1
            else:
                high = middle
        return low

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and beyond."""
        slot = self._slot_at_or_below(offset - 1) if self.entries else -1
        self._truncate_entries(slot + 1)

    def check(self, segment_bytes: int) -> None:
        """CorruptIndex if the file cannot be an index of this segment."""
        if self._length % 8:
            raise CorruptIndex(f"{self.path} has {self._length} bytes, not a multiple of 8")
        if not self.entries:
            return
        offset, position = self.last_entry
        if offset < self.base_offset:
            raise CorruptIndex(f"{self.path} ends at offset {offset}, below its base")
        if not 0 < position < segment_bytes:
            raise CorruptIndex(f"{self.path} ends at byte {position} of a segment of {segment_bytes}")

    def _slot_at_or_below(self, offset: int) -> int:
        relative = offset - self.base_offset
        mapped = self._mapped()
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) >> 1
            if _unpack_offset(mapped, middle << 3)[0] <= relative:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _truncate_entries(self, entries: int) -> None:
        super()._truncate_entries(entries)
        self._last = None if self.entries else (self.base_offset, 0)
