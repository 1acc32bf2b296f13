"""Batches made anew by cleaning: with fewer records, with a delete horizon, or as an empty header.

A batch that loses records keeps its offsets (first and last), codec and producer fields, and the bytes of the records
that stay; length, count, greatest timestamp and checksum are new. A delete horizon is kept in the base timestamp
(KIP-534), so that the timestamps of the records are written anew once.

`superseded` has a byte for each record of a batch: 0 for those that stay, 1 for those that go.
"""

from __future__ import annotations

import struct
from itertools import compress as select
from typing import NamedTuple

from ottla.log_store.compaction.header_fields import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
    Header,
)
from ottla.log_store.files import Buffer
from ottla.wire.crc import crc32c
from ottla.wire.records.builder import write_varint
from ottla.wire.records.compression import compress
from ottla.wire.records.header import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    MAGIC_V2,
    NO_TIMESTAMP,
    SMALLEST_BATCH_LENGTH,
    TIMESTAMP_TYPE_BIT,
)
from ottla.wire.records.key_scan import record_bounds
from ottla.wire.records.records import read_varint, read_varlong

_pack_head = struct.Struct(
    ">qiibI"
).pack  # the two parts of a header, what the checksum covers being the second
_pack_tail = struct.Struct(">hiqqqhii").pack

Flags = bytes | bytearray


class Rewritten(NamedTuple):
    """A whole batch, and the greatest timestamp in it."""

    data: Buffer
    max_timestamp: int


def emptied(header: Header) -> Rewritten:
    """A header without records."""
    attributes = header[ATTRIBUTES] & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    return _batch(header, b"", 0, attributes, NO_TIMESTAMP, header[MAX_TIMESTAMP])


def reduced(header: Header, payload: bytes, superseded: Flags) -> Rewritten:
    """Without the records that go; `payload` is decompressed. At least one stays."""
    bounds = record_bounds(payload, len(superseded))
    # Records stay and go in runs: where a flag differs from the one before it, a run begins or ends.
    before = int.from_bytes(b"\1" + superseded, "big")
    behind = int.from_bytes(superseded + b"\1", "big")
    edges = list(select(bounds, (before ^ behind).to_bytes(len(bounds), "big")))
    return _compressed(
        header,
        b"".join(map(payload.__getitem__, map(slice, edges[::2], edges[1::2]))),
        superseded.count(0),
        header[ATTRIBUTES],
        header[BASE_TIMESTAMP],
        _greatest_timestamp(header, payload, bounds, superseded),
    )


def with_horizon(header: Header, payload: bytes, superseded: Flags, horizon_ms: int) -> Rewritten:
    """Without the records that go, and with a delete horizon."""
    bounds = record_bounds(payload, len(superseded))
    shift = header[BASE_TIMESTAMP] - horizon_ms
    records = bytearray()
    for index, goes in enumerate(superseded):
        if goes:
            continue
        _, at = read_varint(payload, bounds[index])
        delta, after = read_varlong(payload, at + 1)
        body = bytearray(payload[at : at + 1])
        write_varint(body, delta + shift)
        body += payload[after : bounds[index + 1]]
        write_varint(records, len(body))
        records += body
    return _compressed(
        header,
        records,
        superseded.count(0),
        header[ATTRIBUTES] | DELETE_HORIZON_BIT,
        horizon_ms,
        _greatest_timestamp(header, payload, bounds, superseded),
    )


def closed(opened: bytes) -> bytes:
    """A batch whose records are to be compressed and lie uncompressed behind its header; its checksum is new."""
    header: Header = HEADER.unpack_from(opened)
    return bytes(
        _compressed(
            header,
            memoryview(opened)[HEADER_SIZE:],
            header[RECORDS_COUNT],
            header[ATTRIBUTES],
            header[BASE_TIMESTAMP],
            header[MAX_TIMESTAMP],
        ).data
    )


def _greatest_timestamp(header: Header, payload: bytes, bounds: list[int], superseded: Flags) -> int:
    """The greatest timestamp of the records that stay. Timestamps tend to ascend, so the search begins at the end."""
    base_timestamp, max_timestamp = header[BASE_TIMESTAMP], header[MAX_TIMESTAMP]
    if header[ATTRIBUTES] & TIMESTAMP_TYPE_BIT or 1 not in superseded:
        return max_timestamp
    most = max_timestamp - base_timestamp
    greatest: int | None = None
    for index in range(len(superseded) - 1, -1, -1):
        if superseded[index]:
            continue
        pos = bounds[index]
        pos += 2 if payload[pos] < 0x80 else 3 if payload[pos + 1] < 0x80 else _length_bytes(payload, pos) + 1
        byte = payload[pos]
        if byte < 0x80:
            delta = (byte >> 1) ^ -(byte & 1)
        elif (high := payload[pos + 1]) < 0x80:
            delta = (high << 6 | (byte & 0x7F) >> 1) ^ -(byte & 1)
        else:
            delta, _ = read_varlong(payload, pos)
        if greatest is None or delta > greatest:
            greatest = delta
            if delta >= most:
                return max_timestamp
    return NO_TIMESTAMP if greatest is None else max(base_timestamp + greatest, NO_TIMESTAMP)


def _length_bytes(payload: bytes, pos: int) -> int:
    return read_varint(payload, pos)[1] - pos


def _compressed(
    header: Header, records: Buffer, count: int, attributes: int, base_timestamp: int, max_timestamp: int
) -> Rewritten:
    codec = attributes & CODEC_MASK
    payload = compress(codec, records) if codec else records
    return _batch(header, payload, count, attributes, base_timestamp, max_timestamp)


def _batch(
    header: Header, payload: Buffer, count: int, attributes: int, base_timestamp: int, max_timestamp: int
) -> Rewritten:
    tail = _pack_tail(
        attributes,
        header[LAST_OFFSET_DELTA],
        base_timestamp,
        max_timestamp,
        header[PRODUCER_ID],
        header[PRODUCER_EPOCH],
        header[BASE_SEQUENCE],
        count,
    )
    head = _pack_head(
        header[BASE_OFFSET],
        SMALLEST_BATCH_LENGTH + len(payload),
        header[LEADER_EPOCH],
        MAGIC_V2,
        crc32c(payload, crc32c(tail)),
    )
    return Rewritten(b"".join((head, tail, payload)), max_timestamp)
