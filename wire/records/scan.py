"""What a broker must know of the records in a batch before it appends them, in a few numbers about all of them.

`scan_records` reads every record: every length is followed, so that fields that do not fit into their record, or
records that do not fill the batch, are found (InvalidRecord); timestamps and offset deltas are read; keys, values and
headers are passed over. That is what Kafka's LogValidator does, at about a microsecond a record, or some nanoseconds
where it is compiled (native/records.c).

`glance_at_records` follows the lengths of the records only and reads the first and the last one: a tenth of that time,
and a fiftieth where the records are of one size. What it says of timestamps and numbering is true of the ends.

Both take a buffer that may go on behind the records, and where these end.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.native import speed
from ottla.wire.records.compression import Buffer
from ottla.wire.records.lengths import last_record_at
from ottla.wire.records.records import (
    SMALLEST_RECORD_BYTES,
    InvalidRecord,
    read_varint,
    read_varlong,
)

_SMALLEST_BODY_BYTES: Final = SMALLEST_RECORD_BYTES - 1


class RecordScan(NamedTuple):
    """The records of a batch in numbers."""

    least_timestamp_delta: int
    greatest_timestamp_delta: int
    first_timestamp_delta: int
    is_numbered: bool
    """The offset deltas are 0, 1, 2 and so on."""
    keyless: int
    """How many records have no key."""


def glance_at_records(buf: Buffer, end: int, count: int) -> RecordScan:
    """Check that `count` records fill `buf` up to `end`, and read the first and the last of them."""
    last = last_record_at(buf, 0, end, count) if count > 0 else None
    if last is None:
        raise InvalidRecord(f"The batch does not hold exactly the {count} records that it counts.")
    try:
        first_time, first_number = _read_deltas(buf, 0)
        last_time, last_number = _read_deltas(buf, last)
    except IndexError:
        raise InvalidRecord("a record ends in the middle of a field") from None
    return RecordScan(
        min(first_time, last_time),
        max(first_time, last_time),
        first_time,
        (first_number, last_number) == (0, count - 1),
        0,
    )


def _read_deltas(buf: Buffer, pos: int) -> tuple[int, int]:
    _, pos = read_varint(buf, pos)
    timestamp_delta, pos = read_varlong(buf, pos + 1)  # behind the attributes, which nothing uses
    offset_delta, pos = read_varint(buf, pos)
    return timestamp_delta, offset_delta


def scan_records(buf: Buffer, end: int, count: int) -> RecordScan:
    """Read `count` records, which must be all there is in `buf` up to `end`."""
    if count <= 0 or count * SMALLEST_RECORD_BYTES > end:
        raise InvalidRecord(f"{count} records do not fit into {end} bytes")
    try:
        if speed is not None:
            found = speed.scan_records(buf, end, count)
            if len(found) == len(RecordScan._fields):
                return RecordScan._make(found)
            _scan(buf, end, count, *found)  # says what is wrong with that record
        return _scan(buf, end, count)
    except IndexError:
        raise InvalidRecord("a batch holds fewer records than its header says") from None


def _scan(buf: Buffer, end: int, count: int, pos: int = 0, begin: int = 0) -> RecordScan:
    """Read the records from the one on that has the number `begin` and is at `pos`."""
    # Varints of one and two bytes are read in place: a call for each would take twice as long in all.
    keyless = 0
    least = greatest = first = 0
    is_numbered = True
    for index in range(begin, count):
        byte = buf[pos]
        if byte < 0x80:
            length = byte >> 1 if not byte & 1 else -1
            pos += 1
        elif not byte & 1 and (high := buf[pos + 1]) < 0x80:
            length = (byte & 0x7F | high << 7) >> 1
            pos += 2
        else:
            length, pos = read_varint(buf, pos)
        stop = pos + length
        if length < _SMALLEST_BODY_BYTES or stop > end:
            raise InvalidRecord(f"a record of {length} bytes where {end - pos} are left")

        byte = buf[pos + 1]  # behind the attributes, which nothing uses
        if byte < 0x80:
            delta = byte >> 1 if not byte & 1 else ~(byte >> 1)
            pos += 2
        else:
            delta, pos = read_varlong(buf, pos + 1)
        if not index:
            first = least = greatest = delta
        elif delta > greatest:
            greatest = delta
        elif delta < least:
            least = delta

        byte = buf[pos]
        if byte < 0x80:
            is_numbered = is_numbered and byte == index << 1
            pos += 1
        elif (high := buf[pos + 1]) < 0x80:
            is_numbered = is_numbered and byte & 0x7F | high << 7 == index << 1
            pos += 2
        else:
            number, pos = read_varint(buf, pos)
            is_numbered = is_numbered and number == index

        pos, is_null = _pass_nullable(buf, pos, stop)
        keyless += is_null
        pos, _ = _pass_nullable(buf, pos, stop)
        if pos + 1 != stop or buf[pos]:
            _pass_headers(buf, pos, stop)
        pos = stop
    if pos != end:
        raise InvalidRecord("a batch holds more than the records its header counts")
    return RecordScan(least, greatest, first, is_numbered, keyless)


def _pass_nullable(buf: Buffer, pos: int, stop: int) -> tuple[int, bool]:
    """The position behind a key or value, and whether it is null; Java takes every negative length for that."""
    byte = buf[pos]
    if byte < 0x80:
        pos += 1
        if byte & 1:
            return pos, True
        length = byte >> 1
    elif not byte & 1 and (high := buf[pos + 1]) < 0x80:
        length = (byte & 0x7F | high << 7) >> 1
        pos += 2
    else:
        length, pos = read_varint(buf, pos)
        if length < 0:
            return pos, True
    if length > stop - pos:
        raise InvalidRecord(f"a field of {length} bytes where {stop - pos} are left")
    return pos + length, False


def _pass_headers(buf: Buffer, pos: int, stop: int) -> None:
    """Follow the headers; they must end where the record does."""
    if pos >= stop:
        raise InvalidRecord("a record ends in the middle of a field")
    count, pos = read_varint(buf, pos)
    if count < 0 or count * 2 > stop - pos:
        raise InvalidRecord(f"{count} headers where {stop - pos} bytes are left")
    for _ in range(count):
        pos, has_no_key = _pass_nullable(buf, pos, stop)
        if has_no_key:
            raise InvalidRecord("a header without a key")
        pos, _ = _pass_nullable(buf, pos, stop)
    if pos != stop:
        raise InvalidRecord(f"a record's fields end {pos - stop:+} bytes from where its length says")
