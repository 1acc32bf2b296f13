"""Batches of a few records made anew without those that go, many in one go.

It makes the same of a batch as `rewriting.reduced`, byte for byte. But where a batch has five records and a log a
million of those, calls of functions are most of the work, so there are hardly any here; fields of the header that stay
are taken as they lie.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ottla.log_store.compaction.chunks import Chunk
from ottla.log_store.compaction.key_map import RecordFlags
from ottla.wire.crc import crc32c
from ottla.wire.records.compression import compress
from ottla.wire.records.header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    COUNT_POSITION,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
)
from ottla.wire.records.records import InvalidRecord, read_varint, read_varlong

FEW: Final = 32  # so many records are quicker looked at one by one

_TIMESTAMP_AT: Final = 35 - ATTRIBUTES_POSITION  # where max_timestamp lies in what the checksum covers
_COUNTS: Final = [struct.pack(">i", count) for count in range(FEW)]
_UNCHECKED_BYTES: Final = (
    ATTRIBUTES_POSITION - LOG_OVERHEAD
)  # of what the length counts, those the checksum does not

_pack_head = struct.Struct(">qiibI").pack  # what lies before the bytes that the checksum covers
_pack_timestamp = struct.Struct(">q").pack


def reduced_batches(chunk: Chunk, indexes: Sequence[int], flags: RecordFlags) -> list[tuple[bytes, int]]:
    """Batches of a chunk without the records that go, each with the greatest timestamp in it. Of their records, at most
    FEW, some stay and some go."""
    superseded, firsts, _ = flags
    raw, headers, bounds = bytes(chunk.data), chunk.headers, chunk.bounds
    found = []
    for index in indexes:
        base_offset, _, epoch, magic, _, attributes, _, base_timestamp, greatest, _, _, _, _ = headers[index]
        chunk.check(index)
        start, stop = bounds[index], bounds[index + 1]
        codec = attributes & CODEC_MASK
        payload = bytes(chunk.payload(index)) if codec else raw[start + HEADER_SIZE : stop]
        kept = [b""]  # what the checksum covers of the header, and records
        pos = 0
        try:
            for goes in superseded[firsts[index] : firsts[index + 1]]:
                byte = payload[pos]
                if byte < 0x80:
                    end = pos + 1 + (byte >> 1)
                elif (high := payload[pos + 1]) < 0x80:
                    end = pos + (high << 6) + (byte >> 1) - 62
                else:
                    end = sum(read_varint(payload, pos))
                if not goes:
                    kept.append(payload[pos:end])
                pos = end
        except IndexError:
            pos = -1
        if pos != len(payload):
            raise InvalidRecord("the records of a batch do not fill it")
        fields = raw[start + ATTRIBUTES_POSITION : start + COUNT_POSITION]
        last = kept[-1]
        delta = last[2] if last[0] < 0x80 else last[3] if last[1] < 0x80 else 0x80
        if (delta >= 0x80 or delta != greatest - base_timestamp << 1) and not attributes & TIMESTAMP_TYPE_BIT:
            greatest = min(_greatest_timestamp(kept, base_timestamp), greatest)
            fields = fields[:_TIMESTAMP_AT] + _pack_timestamp(greatest) + fields[_TIMESTAMP_AT + 8 :]
        kept[0] = fields + _COUNTS[len(kept) - 1]
        if codec:
            kept[1:] = [compress(codec, b"".join(kept[1:]))]
        body = b"".join(kept)
        head = _pack_head(base_offset, _UNCHECKED_BYTES + len(body), epoch, magic, crc32c(body))
        found.append((head + body, greatest))
    return found


def _greatest_timestamp(kept: Sequence[bytes], base_timestamp: int) -> int:
    """That of some records, which begin with the second of these."""
    most = -1 << 63
    for record in kept[1:]:
        at = 2 if record[0] < 0x80 else 3 if record[1] < 0x80 else read_varint(record, 0)[1] + 1
        byte = record[at]
        if byte < 0x80:
            delta = (byte >> 1) ^ -(byte & 1)
        elif (high := record[at + 1]) < 0x80:
            delta = (high << 6 | (byte & 0x7F) >> 1) ^ -(byte & 1)
        else:
            delta, _ = read_varlong(record, at)
        if delta > most:
            most = delta
    return max(base_timestamp + most, NO_TIMESTAMP)
