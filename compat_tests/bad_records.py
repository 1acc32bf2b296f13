"""Batches whose records are not what the header says, every checksum right: what a broken or hostile client sends.

Each case makes the records section as bytes, so that it can be put into a batch of any codec, and header fields that
differ from the truth.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import crc32c

from ottla.wire.records import Codec, compress
from ottla.wire.records.builder import write_varint
from ottla.wire.records.header import HEADER

NO_HEADERS: tuple[tuple[bytes | None, bytes | None], ...] = ()


def record(
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Sequence[tuple[bytes | None, bytes | None]] = NO_HEADERS,
    *,
    attributes: int = 0,
    headers_count: int | None = None,
    key_length: int | None = None,
    length_error: int = 0,
    length: int | None = None,
    tail: bytes = b"",
) -> bytes:
    """One record; the keyword arguments make it wrong."""
    body = bytearray((attributes,))
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_nullable(body, key, key_length)
    _write_nullable(body, value)
    write_varint(body, len(headers) if headers_count is None else headers_count)
    for name, content in headers:
        _write_nullable(body, name)
        _write_nullable(body, content)
    body += tail
    out = bytearray()
    write_varint(out, len(body) + length_error if length is None else length)
    return bytes(out + body)


def _write_nullable(out: bytearray, content: bytes | None, length: int | None = None) -> None:
    if length is None:
        length = -1 if content is None else len(content)
    write_varint(out, length)
    out += content or b""


@dataclass(frozen=True, slots=True)
class BadRecords:
    """The records of a batch, uncompressed, and what its header says of them."""

    records: bytes
    count: int = 3
    header: dict[str, int] = field(default_factory=dict)
    after_stream: bytes = b""
    payload_cut: int = 0
    payload: bytes | None = None

    def batch(self, codec: int, base_timestamp: int, **header: int) -> bytes:
        """The whole batch."""
        payload = self.payload
        if payload is None:
            payload = self.records if codec == Codec.NONE else compress(codec, self.records)
            payload = payload[: len(payload) - self.payload_cut] + self.after_stream
        values = {
            "base_offset": 0,
            "leader_epoch": -1,
            "magic": 2,
            "attributes": 0,
            "last_offset_delta": self.count - 1,
            "base_timestamp": base_timestamp,
            "max_timestamp": base_timestamp,
            "producer_id": -1,
            "producer_epoch": -1,
            "base_sequence": -1,
            "records_count": self.count,
            **self.header,
            **header,
        }
        if "max_timestamp_delta" in values:
            values["max_timestamp"] = base_timestamp + values["max_timestamp_delta"]
        return assemble(payload, codec, values)


def assemble(payload: bytes, codec: int, values: dict[str, int]) -> bytes:
    """A header with a right length and checksum around a payload."""
    data = bytearray(61 + len(payload))
    data[61:] = payload
    HEADER.pack_into(
        data,
        0,
        values["base_offset"],
        len(data) - 12,
        values["leader_epoch"],
        values["magic"],
        0,
        values["attributes"] | codec,
        values["last_offset_delta"],
        values["base_timestamp"],
        values["max_timestamp"],
        values["producer_id"],
        values["producer_epoch"],
        values["base_sequence"],
        values["records_count"],
    )
    struct.pack_into(">I", data, 17, crc32c.crc32c(memoryview(data)[21:]))
    return bytes(data)


def three(*offset_deltas: int, **more: int) -> bytes:
    """Records with these offset deltas."""
    return b"".join(record(delta, **more) for delta in offset_deltas)  # type: ignore[arg-type]


GOOD = three(0, 1, 2)

CASES: dict[str, BadRecords] = {
    "good": BadRecords(GOOD),
    "deltas all 0": BadRecords(three(0, 0, 0)),
    "deltas descend": BadRecords(three(2, 1, 0)),
    "deltas with gaps": BadRecords(three(0, 5, 9)),
    "deltas from 1": BadRecords(three(1, 2, 3)),
    "negative delta": BadRecords(three(-1, 0, 1)),
    "deltas far apart": BadRecords(three(0, 1, 2**31 - 1)),
    "one more counted": BadRecords(GOOD, count=4),
    "one less counted": BadRecords(GOOD, count=2),
    "none there": BadRecords(b""),
    "bytes behind the records": BadRecords(GOOD + b"\x00\x01"),
    "zeros behind the records": BadRecords(GOOD + b"\x00\x00"),
    "bytes behind the stream": BadRecords(GOOD, after_stream=b"\x00\x01\x02"),
    "payload cut": BadRecords(GOOD, payload_cut=3),
    "payload is noise": BadRecords(GOOD, payload=b"\x93\x11noise that is no stream of any codec"),
    "payload is empty": BadRecords(GOOD, payload=b""),
    "negative record length": BadRecords(record(0) + record(1) + record(2, length=-1)),
    "record length 0": BadRecords(record(0) + record(1) + b"\x00"),
    "record too long": BadRecords(record(0) + record(1) + record(2, length=1000)),
    "record length over 2 GiB": BadRecords(record(0) + record(1) + record(2, length=2**31 - 1)),
    "record with a tail": BadRecords(record(0) + record(1, tail=b"xx") + record(2)),
    "record length 1 short": BadRecords(record(0) + record(1) + record(2, length_error=-1)),
    "record length 1 over": BadRecords(record(0) + record(1, length_error=1) + record(2)),
    "key length -2": BadRecords(record(0) + record(1, key=None, key_length=-2) + record(2)),
    "key too long": BadRecords(record(0) + record(1, key_length=90) + record(2)),
    "negative headers count": BadRecords(record(0) + record(1, headers_count=-1) + record(2)),
    "headers not there": BadRecords(record(0) + record(1, headers_count=3) + record(2)),
    "a million headers": BadRecords(record(0) + record(1, headers_count=1_000_000) + record(2)),
    "header key null": BadRecords(record(0) + record(1, headers=[(None, b"x")]) + record(2)),
    "header value null": BadRecords(record(0) + record(1, headers=[(b"h", None)]) + record(2)),
    "header key not utf-8": BadRecords(record(0) + record(1, headers=[(b"\xff\xfe", b"x")]) + record(2)),
    "record attributes": BadRecords(record(0) + record(1, attributes=3) + record(2)),
    "long varint": BadRecords(record(0) + record(1) + b"\x80\x80\x80\x80\x80\x01" + bytes(16)),
    "max timestamp above": BadRecords(GOOD, header={"max_timestamp_delta": 500}),
    "max timestamp below": BadRecords(
        record(0) + record(1, 70) + record(2, 20), header={"max_timestamp_delta": 0}
    ),
    "max timestamp -1": BadRecords(record(0) + record(1, 70) + record(2, 20), header={"max_timestamp": -1}),
    "timestamps before the base": BadRecords(
        record(0, -5) + record(1, -90) + record(2, -7), header={"max_timestamp_delta": 0}
    ),
    "far in the future inside": BadRecords(record(0) + record(1, 2 * 3_600_000) + record(2)),
    "far in the future in the header": BadRecords(GOOD, header={"max_timestamp_delta": 2 * 3_600_000}),
    "far in the past inside": BadRecords(record(0) + record(1, -1_000_000) + record(2)),
    "timestamp overflows": BadRecords(record(0) + record(1, 2**63 - 1) + record(2)),
    "timestamp -1 inside": BadRecords(
        record(0, -1) + record(1, -1) + record(2, -1), header={"base_timestamp": 0, "max_timestamp": 0}
    ),
    "key null": BadRecords(record(0) + record(1, key=None) + record(2)),
    "key null and far in the future": BadRecords(record(0) + record(1, key=None) + record(2, 2 * 3_600_000)),
    "tombstone": BadRecords(record(0) + record(1, value=None) + record(2)),
    "claims log append time": BadRecords(GOOD, header={"attributes": 0x08}),
    "claims log append time without a time": BadRecords(
        GOOD, header={"attributes": 0x08, "max_timestamp": -1}
    ),
    "unused attribute bits": BadRecords(GOOD, header={"attributes": 0x0100}),
    "claims a delete horizon": BadRecords(GOOD, header={"attributes": 0x40}),
}
