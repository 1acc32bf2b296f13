"""Which records are superseded: the keys of the dirty part of a log, and a flag for each of its records.

Records of the dirty part are numbered in the order they are met, and each key leads to the number of its last record so
far; when a later one comes, the flag of the one before is set. The pass that copies then looks at no key of the dirty
part again, only at flags. A record of the clean part is superseded if its key is in the map at all.

Keys are kept whole, so that two keys are never taken for one. Memory is bounded: every key, record and batch is charged
with what it takes in the worst case, and the map is full when the charges exceed its share of
log.cleaner.dedupe.buffer.size. What comes after that is left for another pass. A batch is taken as a whole, so each
pass comes at least one batch further.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import compress
from typing import Final

from ottla.wire.records.key_scan import ScannedBatch

# A slot of a dict just after it has grown, a number, the head of a bytes object, and rounding to its size class.
BYTES_PER_KEY: Final = 60 + 32 + 33 + 8
BYTES_PER_BATCH: Final = 2 * 2 * 8  # two numbers, in arrays that grow with some room to spare
_SWAP_FLAGS: Final = bytes([1, 0]) + bytes(254)


class DirtyBatch:
    """What is known of a batch of the dirty part: a flag for each record, 1 if it is superseded or has no key, and
    whether some have no value."""

    __slots__ = ("flags", "has_tombstones")

    def __init__(self, flags: bytearray, has_tombstones: bool) -> None:
        self.flags = flags
        self.has_tombstones = has_tombstones

    @property
    def survivors(self) -> Sequence[int]:
        """The indexes of the records that stay."""
        flags = self.flags
        if 1 not in flags:
            return range(len(flags))
        return list(compress(range(len(flags)), flags.translate(_SWAP_FLAGS)))


class KeyMap:
    """The last record of each key up to `latest_offset`."""

    __slots__ = ("_bases", "_firsts", "_flags", "charged_bytes", "entries", "latest_offset", "max_bytes")

    def __init__(self, max_bytes: float) -> None:
        self.max_bytes = max_bytes
        self.charged_bytes = 0
        self.entries: dict[bytes, int] = {}
        self.latest_offset = -1
        self._flags = bytearray()
        self._bases = array("q")  # base offsets of the batches, and for each
        self._firsts = array("q")  # twice the number of its first record, and 1 more if it has tombstones

    @property
    def is_full(self) -> bool:
        return self.charged_bytes >= self.max_bytes

    def add(self, scan: ScannedBatch, base_offset: int) -> None:
        """The records of a batch that comes after all others so far."""
        keys = scan.keys
        entries, flags = self.entries, self._flags
        first = len(flags)
        self._bases.append(base_offset)
        self._firsts.append(first << 1 | bool(scan.tombstones))
        flags.extend(bytes(len(keys)))
        self.charged_bytes += BYTES_PER_BATCH + len(keys)
        if not keys:
            return
        known = len(entries)
        if scan.keyless or len(set(keys)) != len(keys):
            self._add_one_by_one(scan, first)
        else:
            for number in map(entries.get, keys):
                if number is not None:
                    flags[number] = 1
            entries.update(zip(keys, range(first, first + len(keys)), strict=True))
        if added := len(entries) - known:
            average_bytes = len(b"".join(keys)) // len(keys) + 1
            self.charged_bytes += added * (BYTES_PER_KEY + average_bytes)

    def _add_one_by_one(self, scan: ScannedBatch, first: int) -> None:
        entries, flags = self.entries, self._flags
        for index in scan.keyless:
            flags[first + index] = 1
        for number, key in enumerate(scan.keys, first):
            if not flags[number]:
                before = entries.get(key)
                if before is not None:
                    flags[before] = 1
                entries[key] = number

    def dirty_batch(self, base_offset: int) -> DirtyBatch | None:
        """What `add` made of a batch; None if it belongs to the clean part."""
        slot = bisect_left(self._bases, base_offset)
        if slot == len(self._bases) or self._bases[slot] != base_offset:
            return None
        start = self._firsts[slot]
        end = self._firsts[slot + 1] >> 1 if slot + 1 < len(self._firsts) else len(self._flags)
        return DirtyBatch(self._flags[start >> 1 : end], bool(start & 1))

    def survivors_of_clean(self, scan: ScannedBatch) -> Sequence[int]:
        """The indexes of the records of a batch of the clean part that no dirty one supersedes; none without a key."""
        entries = self.entries
        keys = scan.keys
        if not scan.keyless and entries.keys().isdisjoint(keys):
            return range(len(keys))
        without = set(scan.keyless)
        return [index for index, key in enumerate(keys) if key not in entries and index not in without]
