"""The keys of many records and where those lie, as fast as Python can: for compaction, which asks of every record.

Nothing here takes a step in Python for each record if it can be helped. Records of a batch tend to look alike: where
they do, with the same lengths of record, key and varints, a whole run is checked column by column and its keys are cut
out at once. Records of any length below half a kilobyte, with keys of up to 63 bytes, are found by a regular
expression that reads how much to skip: it has an alternative for each length there is. The others are walked one by
one.

Keys come with their length before them, as they lie in a record; in two records of one key those bytes are the same.
Values and headers are not looked at, but for whether there is a value.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

from ottla.wire.records.builder import write_varint
from ottla.wire.records.compression import Codec, decompress
from ottla.wire.records.header import BatchView
from ottla.wire.records.records import MAX_BATCH_BYTES, SMALLEST_RECORD_BYTES, InvalidRecord, read_varint

NO_KEY: Final = b""  # in the place of a key; an empty one is its length, a zero

_SHORTEST_RUN: Final = 16
_WALK: Final = 64  # records to go one by one before something quicker is tried again
_LONG_WALK: Final = 1024  # the same, where there is nothing quicker but a run
_LOW_BYTES: Final = bytes(range(0x80))
_HIGH_BYTES: Final = bytes(range(0x80, 0x100))
_MOST_64S: Final = 7  # what the second byte of a length may be for the regular expression: 64 bytes each

# The size of a record whose length takes two bytes is the sum of what those mean; below zero if it takes more.
_SIZE_OF_LOW: Final = [(byte >> 1) - 62 for byte in range(0x100)]
_SIZE_OF_HIGH: Final = [byte << 6 if byte < 0x80 else -(1 << 10) for byte in range(0x100)]


class KeyScan(NamedTuple):
    """What compaction needs to know of records, in their order."""

    keys: list[bytes]  # each with its length before it, NO_KEY where there is none
    keyless: list[int]  # indexes of the records without a key
    tombstones: list[int]  # indexes of the records without a value


def batch_payload(view: BatchView, max_batch_bytes: int = MAX_BATCH_BYTES) -> bytes:
    """The records of a batch, decompressed."""
    if view.codec == Codec.NONE:
        return bytes(view.payload)
    return decompress(view.codec, view.payload, max_batch_bytes)


# ---- where records lie


def record_bounds(payload: bytes, count: int) -> list[int]:
    """Where each of `count` records begins, and where the last one ends, going by their lengths alone; InvalidRecord
    if they do not fill the payload."""
    bounds: list[int] = []
    pos = 0
    try:
        while (left := count - len(bounds)) > 0:
            if left >= _SHORTEST_RUN:
                size = _size_at(payload, pos)
                run = _run_of_size(payload, pos, size, left) if size == _size_at(payload, pos + size) else 0
                if run >= _SHORTEST_RUN:
                    bounds.extend(range(pos, pos + run * size, size))
                    pos += run * size
                    continue
            pos = _walk_bounds(payload, pos, min(left, _LONG_WALK), bounds)
    except IndexError:
        pos = -1
    if pos != len(payload) or count < 0:
        raise InvalidRecord("the records of a batch do not fill it")
    bounds.append(pos)
    return bounds


def _walk_bounds(payload: bytes, pos: int, count: int, bounds: list[int]) -> int:
    """Add where each of `count` records from `pos` on begins; returns where the next one does."""
    add = bounds.append
    for _ in range(count):
        add(pos)
        byte = payload[pos]
        if byte < 0x80:
            pos += 1 + (byte >> 1)
        else:
            size = _SIZE_OF_LOW[byte] + _SIZE_OF_HIGH[payload[pos + 1]]
            pos += size if size > 0 else _size_at(payload, pos)
    return pos


def _size_at(payload: bytes, pos: int) -> int:
    length, after = read_varint(payload, pos)
    if length < SMALLEST_RECORD_BYTES - 1:
        raise InvalidRecord(f"a record of {length} bytes")
    return after + length - pos


def _run_of_size(payload: bytes, pos: int, size: int, count: int) -> int:
    """How many records from `pos` on have the length of the first; 0 for few."""
    count = min(count, (len(payload) - pos) // size)
    at = pos
    while count >= _SHORTEST_RUN:
        count = _equal_run(payload, at, size, count)
        if payload[at] < 0x80:
            return count
        at += 1
    return 0


# ---- keys


def scan_keys(payload: bytes, count: int) -> KeyScan:
    """The keys of `count` records that fill the payload; InvalidRecord where they do not make sense."""
    if not 0 <= count * SMALLEST_RECORD_BYTES <= len(payload):
        raise InvalidRecord(f"{count} records do not fit into {len(payload)} bytes")
    scan = KeyScan([], [], [])
    keys = scan.keys
    pos = 0
    try:
        while (left := count - len(keys)) > 0:
            if left >= _SHORTEST_RUN:
                after_run = _take_run(scan, payload, pos, left)
                if after_run == pos:
                    pos = _take_matches(scan, payload, pos, count)
                    pos = _walk(scan, payload, pos, min(_WALK, count - len(keys)))
                else:
                    pos = after_run
            else:
                pos = _walk(scan, payload, pos, left)
    except IndexError:
        raise InvalidRecord("a record ends in the middle of a field") from None
    if pos != len(payload) or len(keys) != count:
        raise InvalidRecord("a batch holds more than the records its header counts")
    return scan


def _take_run(scan: KeyScan, payload: bytes, pos: int, count: int) -> int:
    """Take the records from `pos` that are laid out as the first of them is, if those are enough to be worth it;
    returns where the next one begins."""
    length, at = read_varint(payload, pos)
    size = at + length - pos
    if length <= 0 or (count := min(count, (len(payload) - pos) // size)) < _SHORTEST_RUN:
        return pos
    columns = list(range(at - pos))  # offsets in the record of bytes that must be equal: its length
    at += 1
    varints = []  # of bytes whose highest bit must be equal: timestamp and offset
    for _ in range(2):
        while payload[at] >= 0x80:
            varints.append(at - pos)
            at += 1
        varints.append(at - pos)
        at += 1
    key_length, key_at = read_varint(payload, at)
    columns += range(at - pos, key_at - pos)
    columns.append(key_at + key_length - pos)  # whether there is a value
    if key_length < 0 or columns[-1] >= size or (not payload[key_at - 1] and key_length):
        return pos
    for column in columns:
        if (count := _equal_run(payload, pos + column, size, count)) < _SHORTEST_RUN:
            return pos
    for column in varints:
        if (count := _same_bit_run(payload, pos + column, size, count)) < _SHORTEST_RUN:
            return pos
    prefix = at - pos
    end = pos + count * size
    first = len(scan.keys)
    form = f"{prefix}x{columns[-1] - prefix}s{size - columns[-1]}x"
    scan.keys.extend(chain.from_iterable(struct.iter_unpack(form, memoryview(payload)[pos:end])))
    if payload[pos + columns[-1]] & 1:
        scan.tombstones.extend(range(first, first + count))
    return end


def _equal_run(payload: bytes, start: int, size: int, count: int) -> int:
    """How many of `count` bytes, one every `size`, are equal to the first from there on."""
    column = payload[start : start + (count - 1) * size + 1 : size]
    first = column[:1]
    if column.count(first) == count:
        return count
    return count - len(column.lstrip(first))


def _same_bit_run(payload: bytes, start: int, size: int, count: int) -> int:
    """How many of `count` bytes, one every `size`, have the highest bit of the first from there on."""
    column = payload[start : start + (count - 1) * size + 1 : size]
    if column[0] < 0x80:
        return count if column.isascii() else count - len(column.lstrip(_LOW_BYTES))
    rest = column.translate(None, _HIGH_BYTES)
    return count if not rest else count - len(column.lstrip(_HIGH_BYTES))


@cache
def _record_pattern(*, of_values: bool) -> re.Pattern[bytes]:
    """An expression that matches a record, or else all that is left. Its group is the key, and there is a value; or the
    groups are the key and the first byte behind it, which tells whether there is one."""

    def byte(value: int) -> bytes:
        return re.escape(bytes([value]))

    two_bytes = [
        byte(0x80 | low << 1)
        + b"(?:%s)" % b"|".join(byte(high) + b".{%d}" % (high * 64 + low) for high in range(1, _MOST_64S + 1))
        for low in range(64)
    ]
    shortest = SMALLEST_RECORD_BYTES - 1
    one_byte = [byte(length << 1) + b".{%d}" % length for length in range(shortest, 64)]
    record = b"|".join(two_bytes + one_byte)
    # Attributes, timestamp and offset, then the key, are looked at before they are passed over with the rest.
    start = rb"[\x80-\xff]?+..[\x80-\xff]*+.[\x80-\xff]*+."
    key = b"(%s)" % b"|".join(byte(length << 1) + b".{%d}" % length for length in range(64))
    value = b"[%s]" % b"".join(byte(each) for each in range(0, 0x100, 2)) if of_values else b"(.)"
    return re.compile(b"(?s)(?=%s%s%s)(?:%s)|.+" % (start, key, value, record))


def _take_matches(scan: KeyScan, payload: bytes, pos: int, count: int) -> int:
    """Take the records from `pos` that the regular expressions know; returns where the next one begins. A key that
    does not fit into its record is taken as it is: such a record is not let into a log."""
    keys, _, tombstones = scan
    found = _record_pattern(of_values=True).findall(payload, pos)
    pos = _end_of_matches(payload, pos, found, bool(found[-1]))
    keys += found
    if len(keys) >= count or pos == len(payload):
        return pos
    pairs = _record_pattern(of_values=False).findall(payload, pos)
    pos = _end_of_matches(payload, pos, pairs, bool(pairs[-1][0]))
    if pairs:
        first = len(keys)
        pair_keys, values = zip(*pairs, strict=True)
        keys += pair_keys
        tombstones += [first + index for index, byte in enumerate(b"".join(values)) if byte & 1]
    return pos


def _end_of_matches(payload: bytes, pos: int, matches: list[bytes], is_all: bool) -> int:
    """Where matches from `pos` end; the last one is no record, and removed, unless they are all that is left."""
    if is_all:
        return len(payload)
    matches.pop()
    return _walk_bounds(payload, pos, len(matches), [])


def _walk(scan: KeyScan, payload: bytes, pos: int, count: int) -> int:
    """Take `count` records one by one; returns where the next one begins."""
    keys, keyless, tombstones = scan
    size = len(payload)
    first = len(keys)
    for index in range(first, first + count):
        byte = payload[pos]
        if byte < 0x80:
            end = pos + 1 + (byte >> 1)
            at = pos + 2
        else:
            high = payload[pos + 1]
            if high < 0x80:
                end = pos + (high << 6) + (byte >> 1) - 62
                at = pos + 3
            else:
                length, at = read_varint(payload, pos)
                end = at + length
                at += 1
        while payload[at] >= 0x80:  # the timestamp
            at += 1
        at += 1
        while payload[at] >= 0x80:  # the offset
            at += 1
        at += 1
        key_length = payload[at]
        if key_length < 0x80 and not key_length & 1:
            key_end = at + 1 + (key_length >> 1)
            key = payload[at:key_end]
        else:
            key, key_end = _long_key(payload, at)
            if key == NO_KEY:
                keyless.append(index)
        if byte & 1 or not key_end < end <= size:
            raise InvalidRecord(f"record {index} of a batch does not fit into its length")
        keys.append(key)
        if payload[key_end] & 1:
            tombstones.append(index)
        pos = end
    return pos


def _long_key(payload: bytes, at: int) -> tuple[bytes, int]:
    """The key whose length lies at `at`, and where it ends; its length is written anew, lest it was written with more
    bytes than it needs."""
    length, start = read_varint(payload, at)
    if length < 0:
        return NO_KEY, start
    key = bytearray()
    write_varint(key, length)
    key += payload[start : start + length]
    return bytes(key), start + length
