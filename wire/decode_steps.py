"""The steps that a decoder is made of: how one field, or the elements of an array, are read.

A step takes the buffer, the position and the list of values read so far; it appends its value and returns
the position behind it. Reading past the end of the buffer raises IndexError or struct.error, which the
decoder around turns into MalformedMessage; slices would be cut short silently, so every length is compared
with the bytes left first. Strings are decoded as Kafka does it: bytes that are not UTF-8 become U+FFFD. That
is three bytes for one, so a string that could not be sent back for its length is refused here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import repeat
from typing import Any

from ottla.wire.errors import MalformedMessage
from ottla.wire.primitives import read_unsigned_varint

StructDecoder = Callable[[memoryview, int], tuple[Any, int]]
Step = Callable[[memoryview, int, list[Any]], int]
ElementsReader = Callable[[memoryview, int, int, list[Any]], int]
"""A step for `count` elements; the count has been checked."""

MAX_STRING_BYTES = 0x7FFF
_SURE_TO_FIT_BYTES = MAX_STRING_BYTES // 3
MAX_FEW_ELEMENTS = 6
"""Arrays of up to as many numbers, such as replicas, have a precompiled layout."""

_int16 = struct.Struct(">h").unpack_from
_int32 = struct.Struct(">i").unpack_from


def run_step(layout: struct.Struct) -> Step:
    unpack, size = layout.unpack_from, layout.size

    def read_run(buf: memoryview, pos: int, values: list[Any]) -> int:
        values += unpack(buf, pos)
        return pos + size

    return read_run


def structure_step(decode: StructDecoder) -> Step:
    def read_structure(buf: memoryview, pos: int, values: list[Any]) -> int:
        value, pos = decode(buf, pos)
        values.append(value)
        return pos

    return read_structure


def nullable_structure_step(decode: StructDecoder, tagged: bool) -> Step:
    """Before it stands whether it is there: -1 says no, or 0 among the tagged fields."""

    def read_structure(buf: memoryview, pos: int, values: list[Any]) -> int:
        if buf[pos] == 0 if tagged else buf[pos] & 0x80:
            values.append(None)
            return pos + 1
        value, pos = decode(buf, pos + 1)
        values.append(value)
        return pos

    return read_structure


def compact_string_step(nullable: bool) -> Step:
    def read_compact_string(buf: memoryview, pos: int, values: list[Any]) -> int:
        length = buf[pos]
        if length < 0x80:
            pos += 1
        else:
            length, pos = read_unsigned_varint(buf, pos)
        end = pos + length - 1
        if end > len(buf) or length > MAX_STRING_BYTES + 1:
            raise MalformedMessage(f"string of {length - 1} bytes, {len(buf) - pos} bytes left")
        if length:
            values.append(str(buf[pos:end], "utf-8", "replace"))
            if length > _SURE_TO_FIT_BYTES:
                _check_fits(values[-1])
            return end
        if not nullable:
            raise MalformedMessage("null, but the field is not nullable")
        values.append(None)
        return pos

    return read_compact_string


def string_step(nullable: bool) -> Step:
    def read_string(buf: memoryview, pos: int, values: list[Any]) -> int:
        length = _int16(buf, pos)[0]
        pos += 2
        end = pos + length
        if end > len(buf):
            raise MalformedMessage(f"string of {length} bytes, {len(buf) - pos} bytes left")
        if length >= 0:
            values.append(str(buf[pos:end], "utf-8", "replace"))
            if length > _SURE_TO_FIT_BYTES:
                _check_fits(values[-1])
            return int(end)
        check_null(length, nullable)
        values.append(None)
        return pos

    return read_string


def bytes_step(nullable: bool, flexible: bool, as_view: bool) -> Step:
    read_length = _compact_length if flexible else _plain_length

    def read_bytes(buf: memoryview, pos: int, values: list[Any]) -> int:
        length, pos = read_length(buf, pos)
        end = pos + length
        if end > len(buf):
            raise MalformedMessage(f"{length} bytes, {len(buf) - pos} bytes left")
        if length >= 0:
            values.append(buf[pos:end] if as_view else bytes(buf[pos:end]))
            return end
        check_null(length, nullable)
        values.append(None)
        return pos

    return read_bytes


def fixed_elements(code: str, size: int) -> ElementsReader:
    """Numbers, booleans, ids."""
    few = [struct.Struct(">" + code * count).unpack_from for count in range(MAX_FEW_ELEMENTS + 1)]
    one = struct.Struct(">" + code)

    def read(buf: memoryview, pos: int, count: int, values: list[Any]) -> int:
        if count <= MAX_FEW_ELEMENTS:
            values.append(list(few[count](buf, pos)))
        else:
            values.append([row[0] for row in one.iter_unpack(buf[pos : pos + count * size])])
        return pos + count * size

    return read


def looped_elements(step: Step) -> ElementsReader:
    """Strings and bytes, which cannot be null inside an array."""

    def read(buf: memoryview, pos: int, count: int, values: list[Any]) -> int:
        found: list[Any] = []
        try:
            for _ in repeat(None, count):
                pos = step(buf, pos, found)
        except MalformedMessage as error:
            raise error.within(f"[{len(found)}]") from None
        values.append(found)
        return pos

    return read


def structure_elements(decode: StructDecoder) -> ElementsReader:
    def read(buf: memoryview, pos: int, count: int, values: list[Any]) -> int:
        found: list[Any] = []
        append = found.append
        try:
            for _ in repeat(None, count):
                element, pos = decode(buf, pos)
                append(element)
        except MalformedMessage as error:
            raise error.within(f"[{len(found)}]") from None
        values.append(found)
        return pos

    return read


def _compact_length(buf: memoryview, pos: int) -> tuple[int, int]:
    length = buf[pos]
    if length < 0x80:
        return length - 1, pos + 1
    length, pos = read_unsigned_varint(buf, pos)
    return length - 1, pos


def _plain_length(buf: memoryview, pos: int) -> tuple[int, int]:
    return _int32(buf, pos)[0], pos + 4


def _check_fits(text: str) -> None:
    size = len(text.encode())
    if size > MAX_STRING_BYTES:
        raise MalformedMessage(f"a string that is not UTF-8, {size} bytes when mended")


def check_null(length: int, nullable: bool) -> None:
    if length < -1:
        raise MalformedMessage(f"length {length}")
    if not nullable:
        raise MalformedMessage("null, but the field is not nullable")
