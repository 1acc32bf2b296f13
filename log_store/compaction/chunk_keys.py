"""The keys of the batches of a chunk, read together: into the map, and later what the map says of them.

A batch of a few records has no time for anything of its own, so the records of many are put one behind the other and
looked at as if they were of one. What comes out of a decompressor may be of any size, so of that only as much is put
together as is worth it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from ottla.log_store.compaction.chunks import Chunk
from ottla.log_store.compaction.header_fields import (
    ATTRIBUTES,
    BASE_OFFSET,
    RECORDS_COUNT,
)
from ottla.log_store.compaction.key_map import KeyMap, RecordFlags, batches_of_records
from ottla.log_store.files import Buffer
from ottla.wire.records.header import CODEC_MASK, CONTROL_BIT, HEADER_SIZE
from ottla.wire.records.key_scan import KeyScan, scan_keys
from ottla.wire.records.records import InvalidRecord

_ENOUGH_BYTES: Final = 1 << 17

_EVERYTHING: Final = float("inf")


def map_keys(key_map: KeyMap, chunk: Chunk, indexes: Sequence[int]) -> int | None:
    """Put the keys of batches of a chunk into the map, until it is full; returns the first batch that is left out."""
    while indexes:
        room = key_map.room
        if room <= 0:
            return indexes[0]
        scan, counts = _scan(chunk, indexes, room)
        taken, indexes = indexes[: len(counts)], indexes[len(counts) :]
        key_map.add(scan, [chunk.headers[index][BASE_OFFSET] for index in taken], counts)
    return None


def flags_of(key_map: KeyMap, chunk: Chunk) -> RecordFlags:
    """What is known of the records of all batches of a chunk. There are no flags for markers and behind the end of the
    map. Batches of the clean part are read for it, and checked against their checksums."""
    headers = chunk.headers
    if headers[-1][BASE_OFFSET] <= key_map.latest_offset and not chunk.attributes & CONTROL_BIT:
        flags = key_map.flags_of([header[BASE_OFFSET] for header in headers])
        if flags is not None:
            return flags
    found: list[bytes | bytearray] = [b""] * len(headers)
    with_tombstones: set[int] = set()
    clean = []
    for index, header in enumerate(headers):
        if (
            header[BASE_OFFSET] <= key_map.latest_offset
            and not header[ATTRIBUTES] & CONTROL_BIT
            and header[RECORDS_COUNT]
        ):
            flags = key_map.flags_of(header[:1])
            if flags is None:
                clean.append(index)
                continue
            first, end = flags.bounds
            found[index] = flags.superseded[first:end]
            if flags.with_tombstones:
                with_tombstones.add(index)
    _look_at_clean(key_map, chunk, clean, found, with_tombstones)
    return RecordFlags(b"".join(found), [0, *accumulate(map(len, found))], with_tombstones)


def scan_chunk(chunk: Chunk) -> None:
    """InvalidRecord or CorruptBatch if something is wrong with the records of a chunk."""
    _scan(chunk, range(len(chunk.headers)), _EVERYTHING)


def _look_at_clean(
    key_map: KeyMap,
    chunk: Chunk,
    indexes: Sequence[int],
    found: list[bytes | bytearray],
    with_tombstones: set[int],
) -> None:
    """Find out what is superseded in batches of the clean part."""
    for index in indexes:
        chunk.check(index)
    while indexes:
        scan, counts = _scan(chunk, indexes, _EVERYTHING)
        taken, indexes = indexes[: len(counts)], indexes[len(counts) :]
        superseded = key_map.flags_of_clean(scan)
        bounds = [0, *accumulate(counts)]
        for index, first, end in zip(taken, bounds[:-1], bounds[1:], strict=True):
            found[index] = superseded[first:end]
        with_tombstones.update([taken[each] for each in batches_of_records(scan.tombstones, bounds)])


def _scan(chunk: Chunk, indexes: Sequence[int], most_records: float) -> tuple[KeyScan, list[int]]:
    """Read the keys of the first few of some batches, the last of which may be one more than fits; and how many records
    each of those has."""
    data, headers, bounds = chunk.data, chunk.headers, chunk.bounds
    counts = [headers[index][RECORDS_COUNT] for index in indexes]
    if min(counts) < 0:
        raise InvalidRecord(f"a batch of {min(counts)} records")
    total = sum(counts)
    if total > most_records:
        totals = list(accumulate(counts))
        counts = counts[: bisect_left(totals, most_records) + 1]
        total = totals[len(counts) - 1]
    if not chunk.attributes & CODEC_MASK:
        payload = b"".join(
            [data[bounds[index] + HEADER_SIZE : bounds[index + 1]] for index in indexes[: len(counts)]]
        )
        return scan_keys(payload, total), counts
    payloads: list[Buffer] = []
    waiting = 0
    for index in indexes[: len(counts)]:
        payloads.append(chunk.payload(index))
        waiting += len(payloads[-1])
        if waiting >= _ENOUGH_BYTES:
            break
    counts = counts[: len(payloads)]
    return scan_keys(b"".join(payloads), sum(counts)), counts
