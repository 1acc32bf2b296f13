"""Turns field specifications into closures that read one version of a structure.

A structure becomes a list of steps `(buffer, position, values) -> position`; a run of fixed-width fields is
one step. When the steps are through, the values are the constructor's arguments; fields that the version
lacks get their defaults, and tagged fields that are there are set on the finished object. An array whose
elements are all of one width is read by a single `iter_unpack`.

Every count and length is compared with the bytes left before anything is made of it: `count * smallest
element <= left`. An element without bytes counts as one byte, so that no frame can ask for more objects
than it has bytes. Strings are decoded as Kafka does it: bytes that are not UTF-8 become U+FFFD.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import repeat, starmap
from operator import itemgetter
from typing import Any

from ottla.wire.errors import MalformedMessage
from ottla.wire.fields import BYTES, RECORDS, STRING, FieldSpec, finish, specs_of
from ottla.wire.primitives import read_tag, read_tagged_count, read_unsigned_varint

StructDecoder = Callable[[memoryview, int], tuple[Any, int]]
Step = Callable[[memoryview, int, list[Any]], int]

MAX_STRING_BYTES = 0x7FFF

_int16 = struct.Struct(">h").unpack_from
_int32 = struct.Struct(">i").unpack_from


def compile_decoder(cls: Any, version: int, flexible: bool) -> StructDecoder:
    """The decoder of a message or structure."""
    finish(cls)
    specs = specs_of(cls)
    present = [spec for spec in specs if version in spec.versions and version not in spec.tagged]
    known_tags = {spec.tag: _tag_reader(spec, version, flexible) for spec in specs if version in spec.tagged}
    steps, names = _compile_steps(present, version, flexible)
    arrange = _arrangement(specs, present)
    read_tags = _tags_reader(known_tags)

    def decode(buf: memoryview, pos: int) -> tuple[Any, int]:
        values: list[Any] = []
        index = 0
        try:
            for step in steps:
                pos = step(buf, pos, values)
                index += 1
            decoded = cls(*values) if arrange is None else cls(*arrange(values))
            if flexible:
                if buf[pos]:
                    pos = read_tags(buf, pos, decoded)
                else:
                    pos += 1
        except MalformedMessage as error:
            raise error.within(names[index]) from None
        except (struct.error, IndexError):
            raise MalformedMessage("the bytes end early", names[index]) from None
        return decoded, pos

    return decode


def smallest_size(cls: type, version: int, flexible: bool) -> int:
    """The fewest bytes a structure can take."""
    size = 1 if flexible else 0
    for spec in specs_of(cls):
        if version in spec.versions and version not in spec.tagged:
            size += _smallest_field(spec, version, flexible)
    return size


def _smallest_field(spec: FieldSpec, version: int, flexible: bool) -> int:
    if spec.is_fixed:
        assert spec.kind is not None
        return spec.kind.size
    if spec.is_array or spec.kind in (BYTES, RECORDS):
        return 1 if flexible else 4
    if spec.kind is STRING:
        return 1 if flexible else 2
    assert spec.structure is not None
    return 1 if version in spec.nullable else smallest_size(spec.structure, version, flexible)


def fixed_format(specs: list[FieldSpec]) -> str:
    """The `struct` format of a run of fixed-width fields."""
    return ">" + "".join(spec.kind.code for spec in specs if spec.kind is not None)


def _compile_steps(present: list[FieldSpec], version: int, flexible: bool) -> tuple[list[Step], list[str]]:
    steps: list[Step] = []
    names: list[str] = []
    run: list[FieldSpec] = []
    for spec in [*present, None]:
        if spec is not None and spec.is_fixed:
            run.append(spec)
            continue
        if run:
            steps.append(_run_step(struct.Struct(fixed_format(run))))
            names.append(run[0].name if len(run) == 1 else f"{run[0].name}..{run[-1].name}")
            run = []
        if spec is not None:
            steps.append(_variable_step(spec, version, flexible))
            names.append(spec.name)
    names.append("")  # behind the last field come the tagged ones, which name themselves
    return steps, names


def _arrangement(specs: list[FieldSpec], present: list[FieldSpec]) -> Callable[[list[Any]], Any] | None:
    """How the values of the wire become constructor arguments; None when they are the first arguments as
    they are."""
    if specs[: len(present)] == present:
        return None
    position = {spec.name: index for index, spec in enumerate(present)}
    last = max((index for index, spec in enumerate(specs) if spec.name in position), default=-1)
    defaults = [spec for spec in specs[: last + 1] if spec.name not in position]
    for index, spec in enumerate(defaults):
        position[spec.name] = len(present) + index
    pick = itemgetter(*[position[spec.name] for spec in specs[: last + 1]])
    if not any(spec.default_is_fresh for spec in defaults):
        constants = tuple(spec.fresh_default() for spec in defaults)
        return lambda values: pick((*values, *constants))
    makers = [spec.fresh_default for spec in defaults]
    return lambda values: pick([*values, *[make() for make in makers]])


def _run_step(layout: struct.Struct) -> Step:
    unpack, size = layout.unpack_from, layout.size

    def read_run(buf: memoryview, pos: int, values: list[Any]) -> int:
        values += unpack(buf, pos)
        return pos + size

    return read_run


def _variable_step(spec: FieldSpec, version: int, flexible: bool) -> Step:
    nullable = version in spec.nullable
    if spec.is_array:
        return _array_step(spec, version, flexible, nullable)
    if spec.structure is not None:
        decode = compile_decoder(spec.structure, version, flexible)
        return _nullable_structure_step(decode) if nullable else _structure_step(decode)
    if spec.kind is STRING:
        return _compact_string_step(nullable) if flexible else _string_step(nullable)
    return _bytes_step(nullable, flexible, as_view=spec.kind is RECORDS)


def _structure_step(decode: StructDecoder) -> Step:
    def read_structure(buf: memoryview, pos: int, values: list[Any]) -> int:
        value, pos = decode(buf, pos)
        values.append(value)
        return pos

    return read_structure


def _nullable_structure_step(decode: StructDecoder) -> Step:
    def read_structure(buf: memoryview, pos: int, values: list[Any]) -> int:
        if buf[pos] & 0x80:  # a negative int8
            values.append(None)
            return pos + 1
        value, pos = decode(buf, pos + 1)
        values.append(value)
        return pos

    return read_structure


def _compact_string_step(nullable: bool) -> Step:
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
            return end
        if not nullable:
            raise MalformedMessage("null, but the field is not nullable")
        values.append(None)
        return pos

    return read_compact_string


def _string_step(nullable: bool) -> Step:
    def read_string(buf: memoryview, pos: int, values: list[Any]) -> int:
        length = _int16(buf, pos)[0]
        pos += 2
        end = pos + length
        if end > len(buf):
            raise MalformedMessage(f"string of {length} bytes, {len(buf) - pos} bytes left")
        if length >= 0:
            values.append(str(buf[pos:end], "utf-8", "replace"))
            return int(end)
        _check_null(length, nullable)
        values.append(None)
        return pos

    return read_string


def _bytes_step(nullable: bool, flexible: bool, as_view: bool) -> Step:
    read_length = _compact_length if flexible else _plain_length

    def read_bytes(buf: memoryview, pos: int, values: list[Any]) -> int:
        length, pos = read_length(buf, pos)
        end = pos + length
        if end > len(buf):
            raise MalformedMessage(f"{length} bytes, {len(buf) - pos} bytes left")
        if length >= 0:
            values.append(buf[pos:end] if as_view else bytes(buf[pos:end]))
            return end
        _check_null(length, nullable)
        values.append(None)
        return pos

    return read_bytes


def _array_step(spec: FieldSpec, version: int, flexible: bool, nullable: bool) -> Step:
    read_length = _compact_length if flexible else _plain_length
    read_elements, smallest = _elements_reader(spec, version, flexible)
    smallest = max(smallest, 1)

    def read_array(buf: memoryview, pos: int, values: list[Any]) -> int:
        count, pos = read_length(buf, pos)
        if count > 0:
            if count * smallest > len(buf) - pos:
                raise MalformedMessage(f"{count} elements in {len(buf) - pos} bytes")
            return read_elements(buf, pos, count, values)
        if count < 0:
            _check_null(count, nullable)
            values.append(None)
        else:
            values.append([])
        return pos

    return read_array


def _elements_reader(
    spec: FieldSpec, version: int, flexible: bool
) -> tuple[Callable[[memoryview, int, int, list[Any]], int], int]:
    """How to read `count` elements, and the fewest bytes one takes."""
    if spec.structure is None:
        kind = spec.kind
        assert kind is not None
        if kind.size:
            return _fixed_elements(kind.code, kind.size), kind.size
        element = FieldSpec(kind, None, False, "0+", None, None, None, None, False)
        smallest = _smallest_field(element, version, flexible)
        return _looped_elements(_variable_step(element, version, flexible)), smallest
    smallest = smallest_size(spec.structure, version, flexible)
    decode = compile_decoder(spec.structure, version, flexible)
    elements = _structure_elements(decode)
    specs = specs_of(spec.structure)
    present = [inner for inner in specs if version in inner.versions and version not in inner.tagged]
    if present and all(inner.is_fixed for inner in present):
        return _even_elements(spec.structure, specs, present, flexible, elements), smallest
    return elements, smallest


def _fixed_elements(code: str, size: int) -> Callable[[memoryview, int, int, list[Any]], int]:
    """Numbers, booleans, ids."""

    def read(buf: memoryview, pos: int, count: int, values: list[Any]) -> int:
        end = pos + count * size
        if code == "16s":
            values.append([bytes(buf[at : at + 16]) for at in range(pos, end, 16)])
        else:
            values.append(list(struct.unpack_from(f">{count}{code}", buf, pos)))
        return end

    return read


def _looped_elements(step: Step) -> Callable[[memoryview, int, int, list[Any]], int]:
    """Strings and bytes, which cannot be null inside an array."""

    def read(buf: memoryview, pos: int, count: int, values: list[Any]) -> int:
        elements: list[Any] = []
        try:
            for _ in repeat(None, count):
                pos = step(buf, pos, elements)
        except MalformedMessage as error:
            raise error.within(f"[{len(elements)}]") from None
        values.append(elements)
        return pos

    return read


def _structure_elements(decode: StructDecoder) -> Callable[[memoryview, int, int, list[Any]], int]:
    def read(buf: memoryview, pos: int, count: int, values: list[Any]) -> int:
        elements: list[Any] = []
        append = elements.append
        try:
            for _ in repeat(None, count):
                element, pos = decode(buf, pos)
                append(element)
        except MalformedMessage as error:
            raise error.within(f"[{len(elements)}]") from None
        values.append(elements)
        return pos

    return read


def _even_elements(
    cls: Any,
    specs: list[FieldSpec],
    present: list[FieldSpec],
    flexible: bool,
    otherwise: Callable[[memoryview, int, int, list[Any]], int],
) -> Callable[[memoryview, int, int, list[Any]], int]:
    """Structures of fixed-width fields. In a flexible version each ends in its count of tagged fields: when
    the bytes where the counts would be are all 0, the elements are as even as they look (by induction from
    the first) and one `iter_unpack` reads them all."""
    layout = struct.Struct(fixed_format(present) + ("x" if flexible else ""))
    size, iter_unpack = layout.size, layout.iter_unpack
    arrange = _arrangement(specs, present)

    def read(buf: memoryview, pos: int, count: int, values: list[Any]) -> int:
        end = pos + count * size
        if flexible and any(buf[pos + size - 1 : end : size]):
            return otherwise(buf, pos, count, values)
        rows: Any = iter_unpack(buf[pos:end])
        values.append(list(starmap(cls, rows if arrange is None else map(arrange, rows))))
        return end

    return read


def _compact_length(buf: memoryview, pos: int) -> tuple[int, int]:
    length = buf[pos]
    if length < 0x80:
        return length - 1, pos + 1
    length, pos = read_unsigned_varint(buf, pos)
    return length - 1, pos


def _plain_length(buf: memoryview, pos: int) -> tuple[int, int]:
    return _int32(buf, pos)[0], pos + 4


def _check_null(length: int, nullable: bool) -> None:
    if length < -1:
        raise MalformedMessage(f"length {length}")
    if not nullable:
        raise MalformedMessage("null, but the field is not nullable")


TagReader = tuple[str, Step]


def _tag_reader(spec: FieldSpec, version: int, flexible: bool) -> TagReader:
    if spec.is_fixed:
        return spec.name, _run_step(struct.Struct(fixed_format([spec])))
    return spec.name, _variable_step(spec, version, flexible)


def _tags_reader(known: dict[int | None, TagReader]) -> Callable[[memoryview, int, Any], int]:
    """Sets the tagged fields it knows on the decoded object and steps over the others."""

    def read_tags(buf: memoryview, pos: int, decoded: Any) -> int:
        count, pos = read_tagged_count(buf, pos)
        tag = -1
        for _ in repeat(None, count):
            tag, start, pos = read_tag(buf, pos, tag)
            reader = known.get(tag)
            if reader is None:
                continue
            name, step = reader
            values: list[Any] = []
            try:
                end = step(buf[:pos], start, values)
            except MalformedMessage as error:
                raise error.within(name) from None
            except (struct.error, IndexError):
                raise MalformedMessage("the bytes end early", name) from None
            if end != pos:
                raise MalformedMessage(f"tagged field of {pos - start} bytes takes {end - start}", name)
            setattr(decoded, name, values[0])
        return pos

    return read_tags
