"""The records inside a batch, format v2: read one after the other, decompressed as far as needed.

    length: varint      of everything after it          key_length: varint      -1 = null
    attributes: int8    nothing uses it                 key
    timestamp_delta: varlong                            value_length: varint    -1 = null
    offset_delta: varint                                value
                                                        headers_count: varint, then for each:
                                                            key_length: varint, key in UTF-8
                                                            value_length: varint (-1 = null), value

A varint is zigzag encoded, of at most 5 bytes (varlong: 10). Serving fetch never comes here; for produce
`lengths` hops from record to record, and `scan` reads small batches. Reading a compressed batch holds one
piece of the stream and one record at a time, so a batch that decompresses to gigabytes costs no more.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.wire.dataclass import dataclass
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.compression import Buffer, Codec, decompress_chunks
from ottla.wire.records.header import HEADER_SIZE, LOG_APPEND_TIME, LOG_OVERHEAD, BatchView

Headers = tuple[tuple[str, bytes | None], ...]

MAX_RECORD_BYTES = 128 * 1024 * 1024  # Kafka sets no limit; this is far above any max.message.bytes
MAX_BATCH_BYTES = 1024 * 1024 * 1024  # decompressed
_MOST_RECORDS_PER_BYTE = 4  # offset deltas ascend, so that no codec puts even two records into a byte
SMALLEST_RECORD_BYTES = 7  # one byte for each of its fields: two nulls, no headers
_SMALLEST_BODY_BYTES = SMALLEST_RECORD_BYTES - 1


class InvalidRecord(KafkaError):
    """A batch whose records are not what its header or their lengths promise."""

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, detail)


@dataclass(slots=True)
class Record:
    """One record. Header keys that are not UTF-8 keep their bytes as surrogate escapes."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def iter_records(
    view: BatchView, max_record_bytes: int = MAX_RECORD_BYTES, max_batch_bytes: int = MAX_BATCH_BYTES
) -> Iterator[Record]:
    """The records of a batch in order; InvalidRecord or CorruptBatch where they stop making sense, and
    MESSAGE_TOO_LARGE where one of them, or all together, decompress to more than is allowed."""
    base_offset = view.base_offset
    base_timestamp = view.base_timestamp
    append_time = view.max_timestamp if view.timestamp_type == LOG_APPEND_TIME else None
    for buf, pos, end in _iter_bodies(view, max_record_bytes, max_batch_bytes):
        try:
            timestamp_delta, pos = read_varlong(buf, pos + 1)
            offset_delta, pos = read_varint(buf, pos)
            key, pos = _read_nullable(buf, pos, end)
            value, pos = _read_nullable(buf, pos, end)
            headers, pos = _read_headers(buf, pos, end)
        except IndexError:
            raise InvalidRecord("a record ends in the middle of a field") from None
        if pos != end:
            raise InvalidRecord(f"a record's fields end {pos - end:+} bytes from where its length says")
        timestamp = _to_int64(base_timestamp + timestamp_delta) if append_time is None else append_time
        yield Record(base_offset + offset_delta, timestamp, key, value, headers)


def iter_positions(
    view: BatchView, max_record_bytes: int = MAX_RECORD_BYTES, max_batch_bytes: int = MAX_BATCH_BYTES
) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each record, without a look at the rest: for finding one by its time."""
    base_offset = view.base_offset
    base_timestamp = view.base_timestamp
    append_time = view.max_timestamp if view.timestamp_type == LOG_APPEND_TIME else None
    for buf, pos, end in _iter_bodies(view, max_record_bytes, max_batch_bytes):
        try:
            timestamp_delta, pos = read_varlong(buf, pos + 1)
            offset_delta, pos = read_varint(buf, pos)
        except IndexError:
            pos = end + 1
        if pos > end:
            raise InvalidRecord("a record ends in the middle of a field")
        timestamp = _to_int64(base_timestamp + timestamp_delta) if append_time is None else append_time
        yield base_offset + offset_delta, timestamp


def count_is_possible(view: BatchView) -> bool:
    """Whether a compressed batch can hold as many records as it counts, without opening it."""
    return (
        0 <= view.records_count <= _MOST_RECORDS_PER_BYTE * (view.batch_length + LOG_OVERHEAD - HEADER_SIZE)
    )


def read_varint(buf: Buffer, pos: int) -> tuple[int, int]:
    """A zigzag varint of 32 bits at `pos` and the position after it; IndexError at the end of the buffer."""
    byte = buf[pos]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    raw = byte & 0x7F
    for shift in (7, 14, 21, 28):
        pos += 1
        byte = buf[pos]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), pos + 1
    raise InvalidRecord("a varint is longer than 5 bytes")


def read_varlong(buf: Buffer, pos: int) -> tuple[int, int]:
    """A zigzag varint of 64 bits at `pos` and the position after it; IndexError at the end of the buffer."""
    byte = buf[pos]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    raw = byte & 0x7F
    for shift in range(7, 70, 7):
        pos += 1
        byte = buf[pos]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFFFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), pos + 1
    raise InvalidRecord("a varlong is longer than 10 bytes")


def _iter_bodies(
    view: BatchView, max_record_bytes: int, max_batch_bytes: int
) -> Iterator[tuple[bytes, int, int]]:
    """Where each record's fields lie: (buffer, first byte after the length, end)."""
    if view.records_count < 0:
        raise InvalidRecord(f"a batch of {view.records_count} records")
    chunks: Iterator[bytes] = iter(())
    buf = b""
    if view.codec == Codec.NONE:
        buf = bytes(view.payload)
    elif view.records_count:  # a batch that compaction emptied has no stream at all
        chunks = _limited(decompress_chunks(view.codec, view.payload), max_batch_bytes)
    pos = 0
    for _ in range(view.records_count):
        while len(buf) - pos < 5 and (chunk := next(chunks, None)) is not None:
            buf = buf[pos:] + chunk
            pos = 0
        try:
            length, pos = read_varint(buf, pos)
        except IndexError:
            raise InvalidRecord("a batch holds fewer records than its header says") from None
        if length < _SMALLEST_BODY_BYTES:
            raise InvalidRecord(f"a record of {length} bytes")
        if length > max_record_bytes:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"a record of {length} bytes")
        if length > len(buf) - pos:
            buf, pos = _gather(buf[pos:], length, chunks), 0
        yield buf, pos, pos + length
        pos += length
    if pos != len(buf) or next(filter(None, chunks), None) is not None:
        raise InvalidRecord("a batch holds more than the records its header counts")


def _limited(chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    for chunk in chunks:
        max_bytes -= len(chunk)
        if max_bytes < 0:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "a batch decompresses to more than is allowed")
        yield chunk


def _gather(start: bytes, length: int, chunks: Iterator[bytes]) -> bytes:
    pieces = [start]
    missing = length - len(start)
    while missing > 0:
        chunk = next(chunks, None)
        if chunk is None:
            raise InvalidRecord(f"a record of {length} bytes where {length - missing} are left")
        pieces.append(chunk)
        missing -= len(chunk)
    return b"".join(pieces)


def _read_nullable(buf: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    length, pos = read_varint(buf, pos)
    if length < 0:  # Java takes every negative length for null
        return None, pos
    if length > end - pos:
        raise InvalidRecord(f"a field of {length} bytes where {end - pos} are left")
    return buf[pos : pos + length], pos + length


def _read_headers(buf: bytes, pos: int, end: int) -> tuple[Headers, int]:
    count, pos = read_varint(buf, pos)
    if count == 0:
        return (), pos
    if count < 0 or count * 2 > end - pos:
        raise InvalidRecord(f"{count} headers where {end - pos} bytes are left")
    headers = []
    for _ in range(count):
        key, pos = _read_nullable(buf, pos, end)
        if key is None:
            raise InvalidRecord("a header without a key")
        value, pos = _read_nullable(buf, pos, end)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), pos


def _to_int64(number: int) -> int:
    if -0x8000000000000000 <= number <= 0x7FFFFFFFFFFFFFFF:
        return number
    return (number + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000
