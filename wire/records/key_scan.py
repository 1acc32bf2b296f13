"""The keys of a batch and where its records lie, as fast as Python can: for compaction, which asks of every record.

Records of a batch tend to look alike. Where they do, with the same lengths of record, key and varints, a whole run is
checked column by column and its keys are cut out at once, all in C; the others are walked one by one. Values
and headers are not looked at, but for whether there is a value.
"""

from __future__ import annotations

import struct
from itertools import chain
from operator import lt
from typing import Final, NamedTuple

from ottla.wire.records.compression import Codec, decompress
from ottla.wire.records.header import BatchView
from ottla.wire.records.records import MAX_BATCH_BYTES, InvalidRecord, read_varint

_SHORTEST_RUN: Final = 16
_WALK: Final = 64  # records to go one by one before another run is tried
_LOW_BYTES: Final = bytes(range(0x80))
_EVEN_BYTES: Final = bytes(range(0, 0x100, 2))
_HIGH_BYTES: Final = bytes(range(0x80, 0x100))


class ScannedBatch(NamedTuple):
    """What compaction needs to know of the records of a batch, in their order."""

    payload: bytes  # decompressed
    bounds: list[int]  # where each record begins, and where the last one ends
    keys: list[bytes]  # empty where there is none
    keyless: list[int]  # indexes of the records without a key
    tombstones: list[int]  # indexes of the records without a value


def batch_payload(view: BatchView, max_batch_bytes: int = MAX_BATCH_BYTES) -> bytes:
    """The records of a batch, decompressed."""
    if view.codec == Codec.NONE:
        return bytes(view.payload)
    return decompress(view.codec, view.payload, max_batch_bytes)


def record_bounds(payload: bytes, count: int) -> list[int]:
    """Where each of `count` records begins, and where the last one ends, going by their lengths alone; InvalidRecord
    if they do not fill the payload."""
    bounds = []
    pos = 0
    try:
        for _ in range(count):
            bounds.append(pos)
            byte = payload[pos]
            if byte < 0x80:
                pos += 1 + (byte >> 1)
            elif (high := payload[pos + 1]) < 0x80:
                pos += (high << 6) + (byte >> 1) - 62
            else:
                length, after = read_varint(payload, pos)
                pos = after + length
    except IndexError:
        pos = -1
    if pos != len(payload):
        raise InvalidRecord("the records of a batch do not fill it")
    bounds.append(pos)
    return bounds


def scan_batch(view: BatchView, max_batch_bytes: int = MAX_BATCH_BYTES) -> ScannedBatch:
    """Look at every record of a batch; InvalidRecord or CorruptBatch where they do not make sense."""
    count = view.records_count
    if count <= 0:
        if count < 0:
            raise InvalidRecord(f"a batch of {count} records")
        return ScannedBatch(b"", [0], [], [], [])
    codec = view.codec
    payload = bytes(view.payload) if codec == Codec.NONE else decompress(codec, view.payload, max_batch_bytes)
    scan = ScannedBatch(payload, [], [], [], [])
    pos = 0
    try:
        if count < _SHORTEST_RUN:
            pos = _walk(scan, 0, count)
        elif _take_columns(scan, count):
            return scan
        while (done := len(scan.keys)) < count:
            pos = _take_run(scan, pos, count - done)
            if len(scan.keys) - done < _SHORTEST_RUN:
                pos = _walk(scan, pos, min(_WALK, count - len(scan.keys)))
    except IndexError:
        raise InvalidRecord("a record ends in the middle of a field") from None
    if pos != len(payload):
        raise InvalidRecord("a batch holds more than the records its header counts")
    scan.bounds.append(pos)
    return scan


def _take_columns(scan: ScannedBatch, count: int) -> bool:
    """Take all records, one field after the other of all of them, which is quicker than one record after the other;
    False, and nothing taken, if one has no key or a long one, or if the batch begins with a run, which is quicker
    still."""
    payload, bounds, keys, _, tombstones = scan
    found = record_bounds(payload, count)
    if found[1] == found[2] - found[1] == found[_SHORTEST_RUN] - found[_SHORTEST_RUN - 1]:
        return False
    starts = found[:-1]
    at = [  # the timestamps
        pos + 2
        if payload[pos] < 0x80
        else pos + 3
        if payload[pos + 1] < 0x80
        else read_varint(payload, pos)[1] + 1
        for pos in starts
    ]
    for _ in range(2):  # the offsets, and then the lengths of the keys
        at = [
            pos + 1
            if payload[pos] < 0x80
            else pos + 2
            if payload[pos + 1] < 0x80
            else _after_varint(payload, pos)
            for pos in at
        ]
    lengths = bytes([payload[pos] for pos in at])
    if not lengths.isascii() or lengths.translate(None, _EVEN_BYTES):
        return False
    ends = [pos + 1 + (length >> 1) for pos, length in zip(at, lengths, strict=True)]
    if not all(map(lt, ends, found[1:])) or bytes([payload[pos] for pos in starts]).translate(
        None, _EVEN_BYTES
    ):
        raise InvalidRecord("a record of a batch does not fit into its length")
    keys.extend([payload[pos + 1 : end] for pos, end in zip(at, ends, strict=True)])
    values = bytes([payload[pos] for pos in ends])
    if values.translate(None, _EVEN_BYTES):
        tombstones.extend([index for index, byte in enumerate(values) if byte & 1])
    bounds.extend(found)
    return True


def _after_varint(payload: bytes, pos: int) -> int:
    while payload[pos] >= 0x80:
        pos += 1
    return pos + 1


def _walk(scan: ScannedBatch, pos: int, count: int) -> int:
    """Take `count` records one by one; returns where the next one begins."""
    payload, bounds, keys, keyless, tombstones = scan
    size = len(payload)
    first = len(keys)
    for index in range(first, first + count):
        bounds.append(pos)
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
        if key_length < 0x80:
            at += 1
            if key_length & 1:
                keyless.append(index)
                key_length = 0
            key_end = at + (key_length >> 1)
        else:
            key_length, at = read_varint(payload, at)
            if key_length < 0:
                keyless.append(index)
                key_length = 0
            key_end = at + key_length
        if byte & 1 or not key_end < end <= size:
            raise InvalidRecord(f"record {index} of a batch does not fit into its length")
        keys.append(payload[at:key_end])
        if payload[key_end] & 1:
            tombstones.append(index)
        pos = end
    return pos


def _take_run(scan: ScannedBatch, pos: int, count: int) -> int:
    """Take the records from `pos` that are laid out as the first of them is, if those are enough to be worth it;
    returns where the next one begins."""
    payload = scan.payload
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
    if key_length < 0 or columns[-1] >= size:
        return pos
    for column in columns:
        if (count := _equal_run(payload, pos + column, size, count)) < _SHORTEST_RUN:
            return pos
    for column in varints:
        if (count := _same_bit_run(payload, pos + column, size, count)) < _SHORTEST_RUN:
            return pos
    prefix = key_at - pos
    end = pos + count * size
    first = len(scan.keys)
    form = f"{prefix}x{key_length}s{size - prefix - key_length}x"
    scan.keys.extend(chain.from_iterable(struct.iter_unpack(form, memoryview(payload)[pos:end])))
    scan.bounds.extend(range(pos, end, size))
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
