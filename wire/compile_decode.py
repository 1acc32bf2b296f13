"""Turns field specifications into closures that read one version of a structure.

A structure becomes a list of steps `(buffer, position, values) -> position`; a run of fixed-width fields is
one step. When the steps are through, the values are the constructor's arguments; fields that the version
lacks get their defaults, and tagged fields that are there are set on the finished object. An array whose
elements are all of one width is read by a single `iter_unpack`.

Every count and length is compared with the bytes left before anything is made of it: `count * smallest
element <= left`. An element without bytes counts as one byte, so that no frame can ask for more objects
than it has bytes. Whoever decodes for a stranger sets a `budget` too: a frame of 100 MB has room for 50
million empty strings, which would cost gigabytes and minutes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextvars import ContextVar
from itertools import repeat, starmap
from operator import itemgetter
from typing import Any

from ottla.wire.decode_steps import (
    ElementsReader,
    Step,
    StructDecoder,
    bytes_step,
    check_null,
    compact_string_step,
    fixed_elements,
    looped_elements,
    nullable_structure_step,
    run_step,
    string_step,
    structure_elements,
    structure_step,
)
from ottla.wire.errors import MalformedMessage
from ottla.wire.fields import BYTES, RECORDS, STRING, FieldSpec, finish, specs_of
from ottla.wire.primitives import read_tag, read_tagged_count, read_unsigned_varint

UNLIMITED = 1 << 62
MAX_ORDINARY_ELEMENTS = 100
"""Straight-line decoders take messages with no more."""


class Elements:
    """How many array elements the message that is being decoded may still have, nested ones included."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = UNLIMITED


# Decoding never waits, so one count is enough for each thread that decodes.
budget: ContextVar[Elements] = ContextVar("budget")
_WITHOUT_END = Elements()

_int32 = struct.Struct(">i").unpack_from


def compile_decoder(cls: Any, version: int, flexible: bool) -> StructDecoder:
    """The decoder of a message or structure."""
    finish(cls)
    specs = specs_of(cls)
    present = [spec for spec in specs if version in spec.versions and version not in spec.tagged]
    known_tags = {spec.tag: _tag_reader(spec, version, flexible) for spec in specs if version in spec.tagged}
    names = _compile_steps(present, version, flexible)
    steps = tuple(names)
    arrange = _arrangement(specs, present)
    read_tags = _tags_reader(known_tags)

    def decode(buf: memoryview, pos: int) -> tuple[Any, int]:
        values: list[Any] = []
        step: Step | None = None
        try:
            for step in steps:
                pos = step(buf, pos, values)
            step = None  # behind the last field come the tagged ones, which name themselves
            decoded = cls(*values) if arrange is None else cls(*arrange(values))
            if flexible:
                if buf[pos]:
                    pos = read_tags(buf, pos, decoded)
                else:
                    pos += 1
        except MalformedMessage as error:
            raise (error if step is None else error.within(names[step])) from None
        except (struct.error, IndexError):
            raise MalformedMessage("the bytes end early", "" if step is None else names[step]) from None
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


def _compile_steps(present: list[FieldSpec], version: int, flexible: bool) -> dict[Step, str]:
    """The steps in their order, each with the name of what it reads."""
    steps: dict[Step, str] = {}
    run: list[FieldSpec] = []
    for spec in [*present, None]:
        if spec is not None and spec.is_fixed:
            run.append(spec)
            continue
        if run:
            name = run[0].name if len(run) == 1 else f"{run[0].name}..{run[-1].name}"
            steps[run_step(struct.Struct(fixed_format(run)))] = name
            run = []
        if spec is not None:
            steps[_variable_step(spec, version, flexible)] = spec.name
    return steps


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


def _variable_step(spec: FieldSpec, version: int, flexible: bool) -> Step:
    nullable = version in spec.nullable
    if spec.is_array:
        return _array_step(spec, version, flexible, nullable)
    if spec.structure is not None:
        decode = compile_decoder(spec.structure, version, flexible)
        if nullable:
            return nullable_structure_step(decode, version in spec.tagged)
        return structure_step(decode)
    if spec.kind is STRING:
        return compact_string_step(nullable) if flexible else string_step(nullable)
    return bytes_step(nullable, flexible, as_view=spec.kind is RECORDS)


def _array_step(spec: FieldSpec, version: int, flexible: bool, nullable: bool) -> Step:
    read_elements, smallest = _elements_reader(spec, version, flexible)
    smallest = max(smallest, 1)

    def read_counted(buf: memoryview, pos: int, count: int, values: list[Any]) -> int:
        if count > 0:
            if count * smallest > len(buf) - pos:
                raise MalformedMessage(f"{count} elements in {len(buf) - pos} bytes")
            elements = budget.get(_WITHOUT_END)
            elements.left -= count
            if elements.left < 0:
                raise MalformedMessage(f"{count} elements are more than a request may have in all")
            return read_elements(buf, pos, count, values)
        if count < 0:
            check_null(count, nullable)
            values.append(None)
        else:
            values.append([])
        return pos

    def read_compact_array(buf: memoryview, pos: int, values: list[Any]) -> int:
        length = buf[pos]
        if 1 < length < 0x80 and (length - 1) * smallest < len(buf) - pos:
            elements = budget.get(_WITHOUT_END)
            elements.left -= length - 1
            if elements.left >= 0:
                return read_elements(buf, pos + 1, length - 1, values)
        length, pos = read_unsigned_varint(buf, pos)
        return read_counted(buf, pos, length - 1, values)

    def read_array(buf: memoryview, pos: int, values: list[Any]) -> int:
        return read_counted(buf, pos + 4, _int32(buf, pos)[0], values)

    return read_compact_array if flexible else read_array


def _elements_reader(spec: FieldSpec, version: int, flexible: bool) -> tuple[ElementsReader, int]:
    """How to read `count` elements, and the fewest bytes one takes."""
    if spec.structure is None:
        kind = spec.kind
        assert kind is not None
        if kind.size:
            return fixed_elements(kind.code, kind.size), kind.size
        element = FieldSpec(kind, None, False, "0+", None, None, None, None, False)
        smallest = _smallest_field(element, version, flexible)
        return looped_elements(_variable_step(element, version, flexible)), smallest
    smallest = smallest_size(spec.structure, version, flexible)
    decode = compile_decoder(spec.structure, version, flexible)
    one_by_one = structure_elements(decode)
    specs = specs_of(spec.structure)
    present = [inner for inner in specs if version in inner.versions and version not in inner.tagged]
    if present and all(inner.is_fixed for inner in present):
        return _even_elements(spec.structure, specs, present, flexible, one_by_one), smallest
    return one_by_one, smallest


def _even_elements(
    cls: Any,
    specs: list[FieldSpec],
    present: list[FieldSpec],
    flexible: bool,
    otherwise: ElementsReader,
) -> ElementsReader:
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


TagReader = tuple[str, Step]


def _tag_reader(spec: FieldSpec, version: int, flexible: bool) -> TagReader:
    if spec.is_fixed:
        return spec.name, run_step(struct.Struct(fixed_format([spec])))
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
