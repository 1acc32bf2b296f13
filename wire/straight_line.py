"""Codecs of the messages that come thousands of times a second, written out as straight-line Python.

The closures of compile_decode and compile_encode go from step to step, and say exactly what is wrong with a message.
Here one function without calls in between is generated for a version of a message, from the same field tables. It
knows the ordinary message: few elements, short strings, no tagged fields, nothing malformed. At anything else it gives
up with `NotOrdinary`, and the closures begin anew; so there is no second opinion about what is right, only a quicker
way to the common one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from ottla.wire.compile_decode import MAX_ORDINARY_ELEMENTS, fixed_format, smallest_size
from ottla.wire.compiled_text import code_of
from ottla.wire.errors import NotOrdinary
from ottla.wire.fields import RECORDS, STRING, FieldSpec, finish, specs_of
from ottla.wire.primitives import ONE_BYTE, read_unsigned_varint, unsigned_varint

_SHORT = 0x7F  # a length below fits into one byte of a compact length


class _Function:
    """The source of a function, and the objects it speaks of."""

    def __init__(self, header: str) -> None:
        self.lines = [header]
        self.names: dict[str, Any] = {"NotOrdinary": NotOrdinary, "ONE_BYTE": ONE_BYTE}
        self._depth = 1
        self._count = 0

    def add(self, *lines: str) -> None:
        self.lines += ["    " * self._depth + line for line in lines]

    def indent(self) -> None:
        self._depth += 1

    def outdent(self) -> None:
        self._depth -= 1

    def variable(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def constant(self, value: Any) -> str:
        """A name for an object."""
        self._count += 1
        name = f"c{self._count}"
        self.names[name] = value
        return name

    def compiled(self, name: str, title: str) -> Any:
        exec(code_of("\n".join(self.lines), f"<{title}>"), self.names)
        return self.names[name]


# ---- decoding


def straight_decoder(cls: Any, version: int) -> Callable[[memoryview, int], Any]:
    """`(buffer, position) -> message` for ordinary messages. NotOrdinary, IndexError or struct.error for others."""
    function = _Function("def decode(buf, pos):")
    function.names["varint"] = read_unsigned_varint
    function.add("size = len(buf)", f"elements = {MAX_ORDINARY_ELEMENTS}")
    decoded = _read_structure(function, cls, version, version >= cls.FLEXIBLE)
    function.add(f"return {decoded}")
    made: Callable[[memoryview, int], Any] = function.compiled("decode", f"decode {cls.__name__} {version}")
    return made


def _read_structure(function: _Function, cls: Any, version: int, flexible: bool) -> str:
    """Reads one; the expression that makes it."""
    finish(cls)
    specs = specs_of(cls)
    present = [spec for spec in specs if version in spec.versions and version not in spec.tagged]
    values: dict[str, str] = {}
    run: list[FieldSpec] = []
    for spec in [*present, None]:
        if spec is not None and spec.is_fixed:
            run.append(spec)
            continue
        if run:
            _read_run(function, run, values)
            run = []
        if spec is not None:
            values[spec.name] = _read_variable(function, spec, version, flexible)
    if flexible:
        function.add("if buf[pos]: raise NotOrdinary", "pos += 1")
    arguments = ", ".join(f"{name}={value}" for name, value in values.items())
    if [spec.name for spec in specs[: len(values)]] == list(values):
        arguments = ", ".join(values.values())
    return f"{function.constant(cls)}({arguments})"


def _read_run(function: _Function, run: list[FieldSpec], values: dict[str, str]) -> None:
    layout = struct.Struct(fixed_format(run))
    names = [function.variable() for _ in run]
    values.update(zip([spec.name for spec in run], names, strict=True))
    targets = ", ".join(names) + ("," if len(names) == 1 else "")
    function.add(f"{targets} = {function.constant(layout.unpack_from)}(buf, pos)", f"pos += {layout.size}")


def _read_variable(function: _Function, spec: FieldSpec, version: int, flexible: bool) -> str:
    if spec.is_array:
        return _read_array(function, spec, version, flexible)
    if spec.structure is not None:
        if version in spec.nullable:
            raise NotOrdinary
        value = function.variable()
        function.add(f"{value} = {_read_structure(function, spec.structure, version, flexible)}")
        return value
    return _read_bytes(function, spec, version, flexible)


def _read_length(function: _Function, size: int, flexible: bool) -> str:
    """Reads the length of a field; -1 is null, and anything below is malformed."""
    length = function.variable()
    if flexible:
        function.add(f"{length} = buf[pos]")
        function.add(f"if {length} < 0x80: {length} -= 1; pos += 1")
        function.add("else:")
        function.add(f"    {length}, pos = varint(buf, pos)", f"    {length} -= 1")
    else:
        layout = struct.Struct(">h" if size == 2 else ">i")
        function.add(f"({length},) = {function.constant(layout.unpack_from)}(buf, pos)", f"pos += {size}")
    return length


def _read_bytes(function: _Function, spec: FieldSpec, version: int, flexible: bool) -> str:
    is_string = spec.kind is STRING
    length = _read_length(function, 2 if is_string else 4, flexible)
    value = function.variable()
    function.add(f"if {length} >= 0:")
    function.indent()
    function.add(f"end = pos + {length}")
    if is_string:
        function.add(f"if end > size or {length} > {_SHORT}: raise NotOrdinary")
        function.add(f"{value} = str(buf[pos:end], 'utf-8', 'replace')")
    else:
        function.add("if end > size: raise NotOrdinary")
        function.add(f"{value} = buf[pos:end]" if spec.kind is RECORDS else f"{value} = bytes(buf[pos:end])")
    function.add("pos = end")
    function.outdent()
    _read_null(function, spec, version, length, value)
    return value


def _read_null(function: _Function, spec: FieldSpec, version: int, length: str, value: str) -> None:
    if version in spec.nullable:
        function.add(f"elif {length} == -1: {value} = None")
    function.add("else: raise NotOrdinary")


def _read_array(function: _Function, spec: FieldSpec, version: int, flexible: bool) -> str:
    count = _read_length(function, 4, flexible)
    value = function.variable()
    function.add(f"if {count} >= 0:")
    function.indent()
    function.add(f"elements -= {count}")
    if spec.structure is not None:
        smallest = max(smallest_size(spec.structure, version, flexible), 1)
    else:
        assert spec.kind is not None
        smallest = spec.kind.size or 1
    function.add(f"if elements < 0 or {count} * {smallest} > size - pos: raise NotOrdinary")
    function.add(f"{value} = []", f"for _ in range({count}):")
    function.indent()
    if spec.structure is not None:
        function.add(f"{value}.append({_read_structure(function, spec.structure, version, flexible)})")
    else:
        element = _element_of(spec)
        if element.is_fixed:
            inner: dict[str, str] = {}
            element.name = "element"
            _read_run(function, [element], inner)
            function.add(f"{value}.append({inner['element']})")
        else:
            function.add(f"{value}.append({_read_bytes(function, element, version, flexible)})")
    function.outdent()
    function.outdent()
    _read_null(function, spec, version, count, value)
    return value


def _element_of(spec: FieldSpec) -> FieldSpec:
    return FieldSpec(spec.kind, None, False, "0+", None, None, None, None, False)


# ---- encoding


def straight_encoder(cls: Any, version: int) -> Callable[[Any], list[Any]]:
    """`message -> parts`, in their order, for ordinary messages. NotOrdinary for others, and where a field holds what
    it should not: AttributeError, TypeError or struct.error."""
    function = _Function("def encode(obj):")
    function.names["varint"] = unsigned_varint
    function.add("parts = []", "add = parts.append")
    _Writer(function, version, version >= cls.FLEXIBLE).structure(cls, "obj")
    function.add("return parts")
    made: Callable[[Any], list[Any]] = function.compiled("encode", f"encode {cls.__name__} {version}")
    return made


class _Writer:
    """Writes the source for one version."""

    def __init__(self, function: _Function, version: int, flexible: bool) -> None:
        self._function = function
        self._version = version
        self._flexible = flexible

    def structure(self, cls: Any, obj: str) -> None:
        """Everything of the object with that name."""
        version = self._version
        specs = specs_of(cls)
        tagged = [spec for spec in specs if version in spec.tagged]
        absent = [spec for spec in specs if version not in spec.versions and not spec.ignorable]
        self._expect_defaults(tagged + absent, obj)
        run: list[FieldSpec] = []
        for spec in specs:
            if version not in spec.versions or version in spec.tagged:
                continue
            if spec.is_fixed:
                run.append(spec)
                continue
            self._run(run, obj, "")
            run = []
            self._field(spec, obj)
        # The pad byte, or the byte by itself, is the count of tagged fields: 0.
        self._run(run, obj, "x" if self._flexible else "")
        if self._flexible and not run:
            self._function.add("add(b'\\0')")

    def _expect_defaults(self, specs: list[FieldSpec], obj: str) -> None:
        names: list[str] = []
        for spec in specs:
            inner = (
                [] if spec.structure is None or spec.is_array or spec.nullable else specs_of(spec.structure)
            )
            names += [f"{spec.name}.{part.name}" for part in inner] or [spec.name]
        if names:
            get = attrgetter(*names)
            defaults = get(SimpleNamespace(**{spec.name: spec.fresh_default() for spec in specs}))
            found = f"{self._function.constant(get)}({obj})"
            self._function.add(f"if {found} != {self._function.constant(defaults)}: raise NotOrdinary")

    def _run(self, run: list[FieldSpec], obj: str, padding: str) -> None:
        if run:
            pack = self._function.constant(struct.Struct(fixed_format(run) + padding).pack)
            values = ", ".join(f"{obj}.{spec.name}" for spec in run)
            self._function.add(f"add({pack}({values}))")

    def _field(self, spec: FieldSpec, obj: str) -> None:
        function = self._function
        value = function.variable()
        function.add(f"{value} = {obj}.{spec.name}")
        if spec.is_array:
            self._array(spec, value)
        elif spec.structure is not None:
            if self._version in spec.nullable:
                raise NotOrdinary
            self.structure(spec.structure, value)
        elif spec.kind is STRING:
            self._string(spec, value)
        else:
            self._bytes(spec, value)

    def _null(self, spec: FieldSpec, value: str, null: bytes) -> None:
        if self._version in spec.nullable:
            self._function.add(f"if {value} is None: add({null!r})")
        else:
            self._function.add(f"if {value} is None: raise NotOrdinary")

    def _string(self, spec: FieldSpec, value: str) -> None:
        function = self._function
        self._null(spec, value, b"\0" if self._flexible else b"\xff\xff")
        function.add("else:")
        function.indent()
        function.add(f"{value} = {value}.encode()", f"length = len({value})")
        function.add(f"if length >= {_SHORT}: raise NotOrdinary")
        function.add(f"add({self._short_length(2)} + {value})")
        function.outdent()

    def _bytes(self, spec: FieldSpec, value: str) -> None:
        function = self._function
        self._null(spec, value, b"\0" if self._flexible else b"\xff\xff\xff\xff")
        function.add("else:")
        function.indent()
        function.add(f"length = len({value})")
        if self._flexible:
            function.add("add(varint(length + 1))")
        else:
            function.add(f"add({function.constant(struct.Struct('>i').pack)}(length))")
        function.add(f"add({value})")
        function.outdent()

    def _short_length(self, size: int) -> str:
        if self._flexible:
            return "ONE_BYTE[length + 1]"
        return repr(bytes(size - 1)) + " + ONE_BYTE[length]"

    def _array(self, spec: FieldSpec, value: str) -> None:
        function = self._function
        self._null(spec, value, b"\0" if self._flexible else b"\xff\xff\xff\xff")
        function.add("else:")
        function.indent()
        function.add(f"length = len({value})", f"if length > {MAX_ORDINARY_ELEMENTS}: raise NotOrdinary")
        function.add(f"add({self._short_length(4)})")
        element = function.variable()
        function.add(f"for {element} in {value}:")
        function.indent()
        if spec.structure is not None:
            self.structure(spec.structure, element)
        else:
            inner = _element_of(spec)
            if inner.is_fixed:
                pack = function.constant(struct.Struct(fixed_format([inner])).pack)
                function.add(f"add({pack}({element}))")
            elif inner.kind is STRING:
                self._string(inner, element)
            else:
                self._bytes(inner, element)
        function.outdent()
        function.outdent()
