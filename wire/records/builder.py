"""Building batches of format v2: for the broker's own topics and markers, for compaction, and for tests.

What comes out is what Kafka's MemoryRecordsBuilder writes for the same records: the first record's timestamp
is the base, unless a delete horizon takes its place (KIP-534), and offsets are written as deltas of
`base_offset`, so that compaction keeps the gaps.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.wire.crc import crc32c
from ottla.wire.dataclass import replace
from ottla.wire.records.compression import Codec, compress
from ottla.wire.records.header import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from ottla.wire.records.records import Record

_CRC_POSITION = 17


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    timestamp_type: int = 0,
    append_time_ms: int = NO_TIMESTAMP,
    partition_leader_epoch: int = -1,
    delete_horizon_ms: int | None = None,
    last_offset: int | None = None,
) -> bytes:
    """One batch of these records. `last_offset` keeps the range of a batch whose last records were compacted.

    With `timestamp_type` LogAppendTime, readers see `append_time_ms` as the time of every record.
    """
    if not records and last_offset is None:
        raise ValueError("a batch without records needs a last_offset")
    base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    if timestamp_type == LOG_APPEND_TIME:
        max_timestamp = append_time_ms
    else:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    if last_offset is None:
        last_offset = records[-1].offset
    attributes = codec
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_BIT
    if is_transactional:
        attributes |= TRANSACTIONAL_BIT
    if is_control:
        attributes |= CONTROL_BIT
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT

    body = bytearray()
    for record in records:
        _write_record(body, record, base_offset, base_timestamp)
    payload = body if codec == Codec.NONE or not records else compress(codec, body, level)
    batch = bytearray(HEADER_SIZE + len(payload))
    batch[HEADER_SIZE:] = payload
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LOG_OVERHEAD,
        partition_leader_epoch,
        MAGIC_V2,
        0,
        attributes,
        last_offset - base_offset,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    crc = crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
    batch[_CRC_POSITION : _CRC_POSITION + 4] = crc.to_bytes(4, "big")
    return bytes(batch)


def with_offsets(records: Sequence[Record], base_offset: int = 0) -> list[Record]:
    """The same records numbered one after the other from `base_offset`."""
    return [replace(record, offset=base_offset + index) for index, record in enumerate(records)]


def write_varint(out: bytearray, number: int) -> None:
    """Append a zigzag varint; 32 and 64 bit numbers look the same."""
    raw = number << 1 if number >= 0 else (-number << 1) - 1
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def _write_record(out: bytearray, record: Record, base_offset: int, base_timestamp: int) -> None:
    body = bytearray(1)  # the attributes, which nothing uses
    write_varint(body, record.timestamp - base_timestamp)
    write_varint(body, record.offset - base_offset)
    _write_nullable(body, record.key)
    _write_nullable(body, record.value)
    write_varint(body, len(record.headers))
    for key, value in record.headers:
        _write_nullable(body, key.encode("utf-8", "surrogateescape"))
        _write_nullable(body, value)
    write_varint(out, len(body))
    out += body


def _write_nullable(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out.append(1)
    else:
        write_varint(out, len(value))
        out += value
