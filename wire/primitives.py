"""The few things every codec reads and writes by hand: unsigned varints and tagged fields.

An unsigned varint has seven bits a byte, lowest first, at most five bytes, and never more than 2^31 - 1 in
Kafka's messages. Compact lengths are such varints, one more than the length, 0 meaning null. A section of
tagged fields (KIP-482) is a count, then for each field its tag, its size and its bytes, tags strictly
ascending. Fields nobody knows are stepped over and not kept: a frame full of them must cost neither memory
nor, beyond a sane number, time.
"""

from __future__ import annotations

from ottla.wire.errors import MalformedMessage

MAX_VARINT = 0x7FFFFFFF
MAX_TAGGED_FIELDS = 1024
"""More in one section is an attack: no message of Kafka has even ten."""

ONE_BYTE = [bytes((value,)) for value in range(256)]


def read_unsigned_varint(buf: memoryview, pos: int) -> tuple[int, int]:
    """The value and the position behind it. IndexError when the buffer ends first."""
    value = buf[pos]
    if value < 0x80:
        return value, pos + 1
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        pos += 1
        byte = buf[pos]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > MAX_VARINT:
                raise MalformedMessage(f"varint {value} is beyond 31 bits")
            return value, pos + 1
    raise MalformedMessage("varint is longer than five bytes")


def unsigned_varint(value: int) -> bytes:
    """The bytes of a value."""
    if value < 0x80:
        return ONE_BYTE[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_tagged_count(buf: memoryview, pos: int) -> tuple[int, int]:
    """How many tagged fields follow, checked against the bytes left (two are the least) and the cap."""
    count, pos = read_unsigned_varint(buf, pos)
    if count > (len(buf) - pos) // 2:
        raise MalformedMessage(f"{count} tagged fields in {len(buf) - pos} bytes")
    if count > MAX_TAGGED_FIELDS:
        raise MalformedMessage(f"{count} tagged fields are more than {MAX_TAGGED_FIELDS}")
    return count, pos


def read_tag(buf: memoryview, pos: int, previous: int) -> tuple[int, int, int]:
    """Tag, position of the field's bytes and position behind them."""
    tag, pos = read_unsigned_varint(buf, pos)
    if tag <= previous:
        raise MalformedMessage(f"tag {tag} after tag {previous}")
    size, pos = read_unsigned_varint(buf, pos)
    end = pos + size
    if end > len(buf):
        raise MalformedMessage(f"tagged field {tag} of {size} bytes, {len(buf) - pos} bytes left")
    return tag, pos, end


def skip_tagged_fields(buf: memoryview, pos: int) -> int:
    """The position behind a section of which no field is of interest."""
    if not buf[pos]:
        return pos + 1
    count, pos = read_tagged_count(buf, pos)
    tag = -1
    for _ in range(count):
        tag, _start, pos = read_tag(buf, pos, tag)
    return pos
