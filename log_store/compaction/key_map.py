"""Which records are superseded: the keys of the dirty part of a log, and a flag for each of its records.

Records of the dirty part are numbered in the order they are met, and each key leads to the number of its last record so
far. When all are in, the records whose numbers are left are the ones that stay: every other gets a flag. The pass that
copies then looks at no key of the dirty part again, only at flags. A record of the clean part is superseded if its
key is in the map at all.

Memory is bounded: every key, record and batch is charged with what it takes in the worst case, and the map is full when
the charges exceed its share of log.cleaner.dedupe.buffer.size. What comes after that is left for another pass. A batch
is taken as a whole, so each pass comes at least one batch further.

Keys are kept whole in a dict, which is as fast as Python can be and takes some 150 bytes for each. Where that does not
do they go to tables of digests with 16 bytes for each, first to a small one that fits beside the dict, then to a larger
one in what the dict took; the dict then gathers the keys to come until there are enough for another journey. Nine
tenths as many keys as in Kafka's map fit in then, each for about twice the time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, repeat
from typing import Final, NamedTuple

from ottla.log_store.compaction.digest_table import DigestTable
from ottla.wire.records.key_scan import NO_KEY, KeyScan

# A slot of a dict just after it has grown, a number, the head of a bytes object, and rounding to its size class.
BYTES_PER_KEY: Final = 60 + 32 + 33 + 8
BYTES_PER_NUMBER: Final = 2 * 8  # in arrays that grow with some room to spare
BYTES_PER_BATCH: Final = 2 * BYTES_PER_NUMBER

# Shares of the memory: what the dict and all the rest take when keys first go to a table, the tables, the dict later.
_FIRST_SPILL: Final = 0.75
_TABLES: Final = (0.2, 0.5)
_LATER_SPILL: Final = 0.125


class RecordFlags(NamedTuple):
    """What is known of the records of some batches: a byte for each record, 1 if it is superseded or has no key; where
    the bytes of each batch begin, and at last where those of the last one end; the batches with tombstones."""

    superseded: bytes | bytearray
    bounds: Sequence[int]
    with_tombstones: Collection[int]  # their indexes


class KeyMap:
    """The last record of each key up to `latest_offset`. First everything is added, then `seal` is called, then
    it is asked."""

    __slots__ = (
        "_bases",
        "_entries",
        "_entries_bytes",
        "_firsts",
        "_flags",
        "_other_bytes",
        "_records",
        "_tables",
        "_with_tombstones",
        "latest_offset",
        "max_bytes",
    )

    def __init__(self, max_bytes: float) -> None:
        self.max_bytes = max_bytes
        self.latest_offset = -1
        self._entries: dict[bytes, int] = {}
        self._tables: list[DigestTable] = []
        self._entries_bytes = self._other_bytes = 0
        self._records = 0
        self._flags = bytearray()
        self._bases = array("q")  # base offsets of the batches, and for each
        self._firsts = array("q")  # the number of its first record
        self._with_tombstones = array("q")  # the indexes of the batches that have some

    def __len__(self) -> int:
        """How many keys there are, once the map is sealed."""
        return len(self._entries) + sum(table.keys for table in self._tables)

    @property
    def charged_bytes(self) -> int:
        return self._entries_bytes + self._other_bytes + sum(table.max_bytes for table in self._tables)

    @property
    def is_full(self) -> bool:
        if self.charged_bytes >= self.max_bytes:
            return True
        tables = self._tables
        return bool(tables) and not (tables[-1].has_room(len(self._entries)) or self._has_room_for_table())

    @property
    def room(self) -> float:
        """How many records fit in for sure, if their keys are short; one that is not full takes a batch at least."""
        return 0 if self.is_full else max((self.max_bytes - self.charged_bytes) / BYTES_PER_KEY, 1)

    def add(self, scan: KeyScan, base_offsets: Sequence[int], counts: Sequence[int]) -> None:
        """The records of batches that come after all others so far."""
        keys, entries = scan.keys, self._entries
        first = self._records
        self._records += len(keys)
        self._note_batches(first, base_offsets, counts, scan.tombstones)
        self._other_bytes += BYTES_PER_BATCH * len(counts) + len(keys)
        known = len(entries)
        entries.update(zip(keys, range(first, self._records), strict=True))
        if scan.keyless:
            del entries[NO_KEY]
        if added := len(entries) - known:
            average_bytes = len(b"".join(keys)) // len(keys) + 1
            self._entries_bytes += added * (BYTES_PER_KEY + average_bytes)
            if self._entries_bytes > self.max_bytes * _LATER_SPILL and (
                self._tables or self._entries_bytes + self._other_bytes > self.max_bytes * _FIRST_SPILL
            ):
                self._spill()

    def _spill(self) -> None:
        """Move the keys from the dict to a table."""
        tables, entries = self._tables, self._entries
        if not tables or not tables[-1].has_room(len(entries)):
            if self._has_room_for_table():
                tables.append(DigestTable(self.max_bytes * _TABLES[len(tables)]))
            if not tables[-1].has_room(len(entries)):  # a batch more than fits
                tables.append(DigestTable.for_keys(len(entries)))
        for table in tables[:-1]:
            entries = table.replace(entries)
        tables[-1].update(entries)
        self._entries = {}
        self._entries_bytes = 0

    def _has_room_for_table(self) -> bool:
        count = len(self._tables)
        if not count:
            return True
        in_use = self._other_bytes + (_LATER_SPILL + sum(_TABLES[: count + 1])) * self.max_bytes
        return count < len(_TABLES) and in_use <= self.max_bytes

    def _note_batches(
        self, first: int, base_offsets: Sequence[int], counts: Sequence[int], tombstones: list[int]
    ) -> None:
        if tombstones:
            slot = len(self._bases)
            found = batches_of_records(tombstones, [0, *accumulate(counts)])
            self._with_tombstones.extend([slot + index for index in found])
            self._other_bytes += BYTES_PER_NUMBER * len(found)
        self._bases.extend(base_offsets)
        self._firsts.extend(accumulate(counts[:-1], initial=first))

    def seal(self) -> None:
        """Nothing more is added: find out which records stay."""
        self._flags = flags = bytearray(b"\1") * self._records
        stay = flags.__setitem__
        if self._tables:
            self._spill()
        for table in self._tables:
            for numbers in table.numbers():
                deque(map(stay, numbers, repeat(0)), maxlen=0)
        deque(map(stay, self._entries.values(), repeat(0)), maxlen=0)
        self._firsts.append(self._records)

    def flags_of(self, base_offsets: Sequence[int]) -> RecordFlags | None:
        """What `add` made of batches that follow each other; None unless it got just these."""
        bases = self._bases
        slot = bisect_left(bases, base_offsets[0])
        end = slot + len(base_offsets)
        if bases[slot:end] != array("q", base_offsets):
            return None
        with_tombstones = self._with_tombstones
        found = with_tombstones[bisect_left(with_tombstones, slot) : bisect_left(with_tombstones, end)]
        return RecordFlags(self._flags, self._firsts[slot : end + 1], [each - slot for each in found])

    def flags_of_clean(self, scan: KeyScan) -> bytes | bytearray:
        """A byte for each record of the clean part: 1 if a dirty one supersedes it, or if it has no key."""
        entries, keys = self._entries, scan.keys
        if self._tables:
            flags = bytearray(map(any, zip(*(table.flags_of(keys) for table in self._tables), strict=True)))
        elif entries.keys().isdisjoint(keys):
            flags = bytearray(len(keys))
        else:
            flags = bytearray(map(entries.__contains__, keys))
        for index in scan.keyless:
            flags[index] = 1
        return flags


def batches_of_records(indexes: Iterable[int], bounds: Sequence[int]) -> list[int]:
    """In which batches records lie, each batch once and in order; the records of a batch begin where the bounds say."""
    return sorted({bisect_right(bounds, index) - 1 for index in indexes})
