"""Turns field specifications into closures that write one version of a structure.

A structure becomes a list of steps `(object, parts) -> None` that append bytes; a run of fixed-width fields
is one step. At the end the parts are joined into as few chunks as possible: only file slices and large
buffers stay what they are, so that a connection can send them without a copy.

What a version cannot say is an error, unless the field is ignorable: a value that differs from the default
of a field which the version lacks would be lost silently otherwise.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from ottla.wire.chunks import Chunk, FileSlice
from ottla.wire.compile_decode import fixed_format
from ottla.wire.decode_steps import MAX_FEW_ELEMENTS, MAX_STRING_BYTES
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.fields import RECORDS, STRING, FieldSpec, specs_of
from ottla.wire.primitives import ONE_BYTE, unsigned_varint

Step = Callable[[Any, list[Any]], None]

JOIN_BELOW_BYTES = 4096
"""A buffer of fewer bytes is copied into its neighbours: cheaper than one more element of a gathered write.
"""

_JOINED_PARTS = 4096

_int16 = struct.Struct(">h").pack
_int32 = struct.Struct(">i").pack


def compile_encoder(cls: type, version: int, flexible: bool) -> Callable[[Any, list[Chunk]], None]:
    """The encoder of a message."""
    encode_parts = _compile_structure(cls, version, flexible)
    add_parts = parts_adder(cls, version)

    def encode(obj: Any, chunks: list[Chunk]) -> None:
        parts: list[Any] = []
        encode_parts(obj, parts)
        add_parts(parts, chunks)

    return encode


def parts_adder(cls: type, version: int) -> Callable[[list[Any], list[Chunk]], None]:
    """How the parts of such a message become chunks."""
    return _add_with_records if _has_records(cls, version) else _add_joined


def _add_joined(parts: list[Any], chunks: list[Chunk]) -> None:
    chunks.append(b"".join(parts))


def _add_with_records(parts: list[Any], chunks: list[Chunk]) -> None:
    small: list[Any] = []
    for part in parts:
        if len(part) < JOIN_BELOW_BYTES and type(part) is not FileSlice:
            small.append(part)
            continue
        if small:
            chunks.append(b"".join(small))
            small = []
        chunks.append(part)
    if small:
        chunks.append(b"".join(small))


def _has_records(cls: type, version: int) -> bool:
    return any(
        spec.kind is RECORDS or (spec.structure is not None and _has_records(spec.structure, version))
        for spec in specs_of(cls)
        if version in spec.versions
    )


def _compile_structure(cls: type, version: int, flexible: bool) -> Step:
    specs = specs_of(cls)
    present = [spec for spec in specs if version in spec.versions and version not in spec.tagged]
    tagged = [spec for spec in specs if version in spec.tagged]
    steps: list[Step] = []
    check = _absence_check(cls, specs, version)
    if check is not None:
        steps.append(check)
    run: list[FieldSpec] = []
    for spec in present:
        if spec.is_fixed:
            run.append(spec)
            continue
        if run:
            steps.append(_run_step(run, ""))
            run = []
        steps.append(_field_step(spec, version, flexible))
    no_tags = flexible and not tagged
    if run:
        steps.append(_run_step(run, "x" if no_tags else ""))  # the pad byte is the count of tagged fields: 0
    elif no_tags:
        steps.append(_no_tags)
    if tagged:
        steps.append(_tags_step(tagged, version, flexible))
    if len(steps) == 1:
        return steps[0]

    def encode_structure(obj: Any, parts: list[Any]) -> None:
        for step in steps:
            step(obj, parts)

    return encode_structure


def _absence_check(cls: type, specs: list[FieldSpec], version: int) -> Step | None:
    missing = [spec for spec in specs if version not in spec.versions and not spec.ignorable]
    if not missing:
        return None
    expected = [(spec.name, spec.fresh_default()) for spec in missing]
    get, defaults = _flat_defaults(missing)

    def check(obj: Any, _: list[Any]) -> None:
        if get(obj) == defaults:
            return
        for name, default in expected:
            value = getattr(obj, name)
            if value != default:
                detail = f"{cls.__name__} version {version} cannot say {name}={value!r}"
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, detail)

    return check


def _flat_defaults(specs: list[FieldSpec]) -> tuple[Callable[[Any], Any], Any]:
    """A getter of these fields and what it returns when all have their defaults. The fields of a structure are
    taken out one by one, because comparing tuples of numbers is much quicker than comparing structures."""
    names: list[str] = []
    for spec in specs:
        inner = [] if spec.structure is None or spec.is_array or spec.nullable else specs_of(spec.structure)
        if inner and all(part.structure is None for part in inner):
            names += [f"{spec.name}.{part.name}" for part in inner]
        else:
            names.append(spec.name)
    get = attrgetter(*names)
    return get, get(SimpleNamespace(**{spec.name: spec.fresh_default() for spec in specs}))


def _run_step(run: list[FieldSpec], padding: str) -> Step:
    pack = struct.Struct(fixed_format(run) + padding).pack
    get = attrgetter(*[spec.name for spec in run])
    if len(run) == 1:

        def write_one(obj: Any, parts: list[Any]) -> None:
            parts.append(pack(get(obj)))

        return write_one

    def write_run(obj: Any, parts: list[Any]) -> None:
        parts.append(pack(*get(obj)))

    return write_run


def _no_tags(_: Any, parts: list[Any]) -> None:
    parts.append(b"\0")


def _field_step(spec: FieldSpec, version: int, flexible: bool) -> Step:
    get = attrgetter(spec.name)
    write = _value_writer(spec, version, flexible)

    def write_field(obj: Any, parts: list[Any]) -> None:
        write(get(obj), parts)

    return write_field


def _value_writer(spec: FieldSpec, version: int, flexible: bool) -> Step:
    """Writes the value of a field that is no part of a run."""
    nullable = version in spec.nullable
    if spec.is_array:
        return _array_writer(spec, version, flexible, nullable)
    if spec.structure is not None:
        write = _compile_structure(spec.structure, version, flexible)
        return _nullable_structure_writer(write, version in spec.tagged) if nullable else write
    if spec.kind is STRING:
        return _string_writer(spec.name, flexible, nullable)
    if spec.is_fixed:
        pack = struct.Struct(fixed_format([spec])).pack
        return lambda value, parts: parts.append(pack(value))
    return _bytes_writer(spec.name, flexible, nullable)


def _nullable_structure_writer(write: Step, tagged: bool) -> Step:
    null = b"\0" if tagged else b"\xff"

    def write_structure(value: Any, parts: list[Any]) -> None:
        if value is None:
            parts.append(null)
        else:
            parts.append(b"\x01")
            write(value, parts)

    return write_structure


def _string_writer(name: str, flexible: bool, nullable: bool) -> Step:
    null = b"\0" if flexible else b"\xff\xff"

    def write_string(value: str | None, parts: list[Any]) -> None:
        if value is None:
            _check_nullable(name, nullable)
            parts.append(null)
            return
        encoded = value.encode()
        length = len(encoded)
        if flexible and length < 0x7F:
            parts.append(ONE_BYTE[length + 1] + encoded)
            return
        if length > MAX_STRING_BYTES:
            raise ValueError(f"{name}: a string of {length} bytes is longer than {MAX_STRING_BYTES}")
        parts.append((unsigned_varint(length + 1) if flexible else _int16(length)) + encoded)

    return write_string


def _bytes_writer(name: str, flexible: bool, nullable: bool) -> Step:
    write_length = _compact_length if flexible else _int32

    def write_bytes(value: Any, parts: list[Any]) -> None:
        if value is None:
            _check_nullable(name, nullable)
            parts.append(write_length(-1))
        else:
            parts.append(write_length(len(value)))
            parts.append(value)

    return write_bytes


def _array_writer(spec: FieldSpec, version: int, flexible: bool, nullable: bool) -> Step:
    name = spec.name
    write_length = _compact_length if flexible else _int32
    write_elements = _elements_writer(spec, version, flexible)

    def write_array(value: Any, parts: list[Any]) -> None:
        if value:
            parts.append(write_length(len(value)))
            write_elements(value, parts)
        elif value is None:
            _check_nullable(name, nullable)
            parts.append(write_length(-1))
        else:
            parts.append(write_length(0))

    return write_array


def _elements_writer(spec: FieldSpec, version: int, flexible: bool) -> Step:
    if spec.structure is None:
        assert spec.kind is not None
        code = spec.kind.code
        if code == "16s":
            return lambda value, parts: parts.append(b"".join(value))
        if code:
            return _numbers_writer(code)
        element = FieldSpec(spec.kind, None, False, "0+", None, None, None, None, False)
        write = _value_writer(element, version, flexible)
    else:
        specs = specs_of(spec.structure)
        present = [inner for inner in specs if version in inner.versions]
        even = len(present) > 1 and all(inner.is_fixed and version not in inner.tagged for inner in present)
        if even and _absence_check(spec.structure, specs, version) is None:
            return _even_elements_writer(present, flexible)
        write = _compile_structure(spec.structure, version, flexible)

    def write_elements(value: Any, parts: list[Any]) -> None:
        for element in value:
            write(element, parts)

    return write_elements if _has_records_within(spec, version) else _joining(write)


def _has_records_within(spec: FieldSpec, version: int) -> bool:
    return spec.structure is not None and _has_records(spec.structure, version)


def _joining(write: Step) -> Step:
    """Writes elements, and joins their parts when they are very many: to join all in the end would be one step of the
    interpreter, in which no other thread has a turn."""

    def write_elements(value: Any, parts: list[Any]) -> None:
        first = len(parts)
        for element in value:
            write(element, parts)
            if len(parts) - first > _JOINED_PARTS:
                parts[first:] = [b"".join(parts[first:])]
                first += 1

    return write_elements


def _numbers_writer(code: str) -> Step:
    few = [struct.Struct(">" + code * count).pack for count in range(MAX_FEW_ELEMENTS + 1)]

    def write_numbers(value: Any, parts: list[Any]) -> None:
        count = len(value)
        if count <= MAX_FEW_ELEMENTS:
            parts.append(few[count](*value))
        else:
            parts.append(struct.pack(f">{count}{code}", *value))

    return write_numbers


def _even_elements_writer(present: list[FieldSpec], flexible: bool) -> Step:
    """Structures of fixed-width fields: one pack each."""
    pack = struct.Struct(fixed_format(present) + ("x" if flexible else "")).pack
    get = attrgetter(*[spec.name for spec in present])

    def write_elements(value: Any, parts: list[Any]) -> None:
        parts.append(b"".join([pack(*get(element)) for element in value]))

    return write_elements


def _compact_length(length: int) -> bytes:
    return ONE_BYTE[length + 1] if length < 0x7F else unsigned_varint(length + 1)


def _check_nullable(name: str, nullable: bool) -> None:
    if not nullable:
        raise ValueError(f"{name}: null, but the field is not nullable")


def _tags_step(tagged: list[FieldSpec], version: int, flexible: bool) -> Step:
    """Tagged fields that differ from their default, in the order of their tags."""
    writers = []
    for spec in sorted(tagged, key=lambda spec: spec.tag or 0):
        prefix = unsigned_varint(spec.tag or 0)
        writers.append((spec.name, spec.fresh_default(), prefix, _value_writer(spec, version, flexible)))

    get, defaults = _flat_defaults(tagged)

    def write_tags(obj: Any, parts: list[Any]) -> None:
        if get(obj) == defaults:
            parts.append(b"\0")
            return
        count = 0
        encoded: list[bytes] = []
        for name, default, prefix, write in writers:
            value = getattr(obj, name)
            if value == default:
                continue
            inner: list[bytes] = []
            write(value, inner)
            data = b"".join(inner)
            encoded += (prefix, unsigned_varint(len(data)), data)
            count += 1
        parts.append(unsigned_varint(count))
        parts += encoded

    return write_tags
