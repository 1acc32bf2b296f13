"""Batches made anew by cleaning: with fewer records, with a delete horizon, or as an empty header.

A batch that loses records keeps its offsets (first and last), codec and producer fields, and the bytes of the records
that stay; length, count, greatest timestamp and checksum are new. A delete horizon is kept in the base timestamp
(KIP-534), so that the timestamps of the records are written anew once.

`superseded` has a byte for each record of a batch: 0 for those that stay, 1 for those that go.
"""

from __future__ import annotations

from itertools import compress as select
from typing import Final, NamedTuple

from ottla.log_store.files import Buffer
from ottla.wire.crc import crc32c
from ottla.wire.records.builder import write_varint
from ottla.wire.records.compression import Codec, compress
from ottla.wire.records.header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchView,
)
from ottla.wire.records.key_scan import record_bounds
from ottla.wire.records.records import read_varint, read_varlong

_CRC_POSITION: Final = 17

Flags = bytes | bytearray


class Rewritten(NamedTuple):
    """A whole batch, and the greatest timestamp in it."""

    data: Buffer
    max_timestamp: int


def emptied(view: BatchView) -> Rewritten:
    """A header without records."""
    attributes = view.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    return _batch(view, b"", 0, attributes, NO_TIMESTAMP, view.max_timestamp)


def reduced(view: BatchView, payload: bytes, superseded: Flags) -> Rewritten:
    """Without the records that go; `payload` is decompressed. At least one stays."""
    bounds = record_bounds(payload, len(superseded))
    # Records stay and go in runs: where a flag differs from the one before it, a run begins or ends.
    before = int.from_bytes(b"\1" + superseded, "big")
    behind = int.from_bytes(superseded + b"\1", "big")
    edges = list(select(bounds, (before ^ behind).to_bytes(len(bounds), "big")))
    records = b"".join(map(payload.__getitem__, map(slice, edges[::2], edges[1::2])))
    return _compressed(
        view,
        records,
        superseded.count(0),
        view.attributes,
        view.base_timestamp,
        _greatest_timestamp(view, payload, bounds, superseded),
    )


def with_horizon(view: BatchView, payload: bytes, superseded: Flags, horizon_ms: int) -> Rewritten:
    """Without the records that go, and with a delete horizon."""
    bounds = record_bounds(payload, len(superseded))
    shift = view.base_timestamp - horizon_ms
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
        view,
        records,
        superseded.count(0),
        view.attributes | DELETE_HORIZON_BIT,
        horizon_ms,
        _greatest_timestamp(view, payload, bounds, superseded),
    )


def _greatest_timestamp(view: BatchView, payload: bytes, bounds: list[int], superseded: Flags) -> int:
    """The greatest timestamp of the records that stay. Timestamps tend to ascend, so the search begins at the end."""
    if view.timestamp_type == LOG_APPEND_TIME or 1 not in superseded:
        return view.max_timestamp
    most = view.max_timestamp - view.base_timestamp
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
                return view.max_timestamp
    return NO_TIMESTAMP if greatest is None else max(view.base_timestamp + greatest, NO_TIMESTAMP)


def _length_bytes(payload: bytes, pos: int) -> int:
    return read_varint(payload, pos)[1] - pos


def _compressed(
    view: BatchView, records: Buffer, count: int, attributes: int, base_timestamp: int, max_timestamp: int
) -> Rewritten:
    payload = records if view.codec == Codec.NONE else compress(view.codec, records)
    return _batch(view, payload, count, attributes, base_timestamp, max_timestamp)


def _batch(
    view: BatchView, payload: Buffer, count: int, attributes: int, base_timestamp: int, max_timestamp: int
) -> Rewritten:
    batch = bytearray(HEADER_SIZE + len(payload))
    HEADER.pack_into(
        batch,
        0,
        view.base_offset,
        len(batch) - LOG_OVERHEAD,
        view.partition_leader_epoch,
        view.magic,
        0,
        attributes,
        view.last_offset_delta,
        base_timestamp,
        max_timestamp,
        view.producer_id,
        view.producer_epoch,
        view.base_sequence,
        count,
    )
    batch[HEADER_SIZE:] = payload
    crc = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
    batch[_CRC_POSITION : _CRC_POSITION + 4] = crc.to_bytes(4, "big")
    return Rewritten(batch, max_timestamp)
