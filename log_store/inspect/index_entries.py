"""The entries of index files, read as they lie there: nothing is mapped, trimmed or believed.

`rest` is what follows the entries: bytes that are no whole entry, or the zeros of an index that is as long as
segment.index.bytes allows because its segment was the active one. A zero entry is never written, since the first
batch of a segment gets none.
"""

from __future__ import annotations

import struct
from typing import Generic, NamedTuple, TypeVar

from ottla.log_store.time_index import TimeEntry
from ottla.log_store.txn_index import AbortedTxn

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_TXN_ENTRY = struct.Struct(">hqqqq")

Entry = TypeVar("Entry")


class OffsetEntry(NamedTuple):
    offset: int
    position: int


class VersionedTxn(NamedTuple):
    version: int
    txn: AbortedTxn


class Entries(NamedTuple, Generic[Entry]):
    """What an index file holds."""

    entries: list[Entry]
    zero_entries: int
    odd_bytes: int


def read_offset_entries(path: str, base_offset: int) -> Entries[OffsetEntry]:
    rows, zeros, odd = _read(path, _OFFSET_ENTRY)
    return Entries([OffsetEntry(base_offset + offset, position) for offset, position in rows], zeros, odd)


def read_time_entries(path: str, base_offset: int) -> Entries[TimeEntry]:
    rows, zeros, odd = _read(path, _TIME_ENTRY)
    return Entries([TimeEntry(timestamp, base_offset + offset) for timestamp, offset in rows], zeros, odd)


def read_txn_entries(path: str) -> Entries[VersionedTxn]:
    with open(path, "rb") as file:
        data = file.read()
    odd = len(data) % _TXN_ENTRY.size
    rows = _TXN_ENTRY.iter_unpack(data[: len(data) - odd])
    return Entries([VersionedTxn(row[0], AbortedTxn(*row[1:])) for row in rows], 0, odd)


def _read(path: str, layout: struct.Struct) -> tuple[list[tuple[int, ...]], int, int]:
    with open(path, "rb") as file:
        data = file.read()
    odd = len(data) % layout.size
    whole = len(data) // layout.size
    filled = -(-len(data.rstrip(b"\0")) // layout.size)
    if filled > whole:  # what is not zero lies in the odd bytes
        filled = whole
    return list(layout.iter_unpack(data[: filled * layout.size])), whole - filled, odd
