"""How a message is declared: kinds, field specifications and the decorators that make a class a message.

A message is one class for all its versions. What Kafka's definitions say of a field is data on the field:

    @message(api_key=ApiKey.LIST_OFFSETS, kind="request", versions=(1, 11), flexible=6)
    class ListOffsetsRequest(Message):
        replica_id: int = field(INT32)
        isolation_level: int = field(INT8, "2+")
        topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
        timeout_ms: int = field(INT32, "10+", ignorable=True)

Versions are written as in Kafka: `0+`, `2-5`, `7`. Every field has a default, so `ListOffsetsRequest()` is
complete. Classes get slots, `==` and a repr at once; the constructor is made when the first instance is, and what
`dataclasses` wants to know when it asks, because hundreds of them would be a good part of the start-up time of a
broker that needs only a few.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, dataclass_transform

from ottla.wire.compiled_text import code_of
from ottla.wire.uuids import ZERO_UUID

T = TypeVar("T")
MAX_VERSION = 32767


class Kind:
    """A primitive type: `code` and `size` as in `struct` when it has a fixed width, and what a field holds
    by default."""

    __slots__ = ("code", "default", "name", "size")

    def __init__(self, name: str, code: str, size: int, default: object) -> None:
        self.name = name
        self.code = code
        self.size = size
        self.default = default

    def __repr__(self) -> str:
        return self.name.upper()


INT8 = Kind("int8", "b", 1, 0)
INT16 = Kind("int16", "h", 2, 0)
UINT16 = Kind("uint16", "H", 2, 0)
INT32 = Kind("int32", "i", 4, 0)
UINT32 = Kind("uint32", "I", 4, 0)
INT64 = Kind("int64", "q", 8, 0)
FLOAT64 = Kind("float64", "d", 8, 0.0)
BOOL = Kind("bool", "?", 1, False)
UUID = Kind("uuid", "16s", 16, ZERO_UUID)
STRING = Kind("string", "", 0, "")
BYTES = Kind("bytes", "", 0, b"")
RECORDS = Kind("records", "", 0, None)

_BY_KIND: Any = object()


class VersionRange:
    """`0+`, `2-5`, `7` or `none`."""

    __slots__ = ("first", "last")

    def __init__(self, text: str) -> None:
        if text == "none":
            self.first, self.last = 1, 0
        elif text.endswith("+"):
            self.first, self.last = int(text[:-1]), MAX_VERSION
        else:
            first, _, last = text.partition("-")
            self.first, self.last = int(first), int(last or first)

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __bool__(self) -> bool:
        return self.first <= self.last

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VersionRange) and (self.first, self.last) == (other.first, other.last)

    def __hash__(self) -> int:
        return hash((self.first, self.last))

    def __repr__(self) -> str:
        if not self:
            return "none"
        if self.last == MAX_VERSION:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


_RANGES: dict[str, VersionRange] = {}


def _range(text: str) -> VersionRange:
    found = _RANGES.get(text)
    if found is None:
        found = _RANGES[text] = VersionRange(text)
    return found


class FieldSpec:
    """A field as data. `kind` or `structure` says what it holds, `is_array` whether it holds a list of
    them."""

    __slots__ = (
        "default",
        "ignorable",
        "is_array",
        "kind",
        "name",
        "nullable",
        "structure",
        "tag",
        "tagged",
        "versions",
    )

    def __init__(
        self,
        kind: Kind | None,
        structure: type | None,
        is_array: bool,
        versions: str,
        nullable: str | None,
        default: object,
        tag: int | None,
        tagged: str | None,
        ignorable: bool,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.structure = structure
        self.is_array = is_array
        self.versions = _range(versions)
        self.nullable = _range(nullable or "none")
        self.tag = tag
        self.tagged = _range("none" if tag is None else tagged or versions)
        self.default = default
        self.ignorable = ignorable

    def fresh_default(self) -> Any:
        """The default, never shared when it can change."""
        if self.default is not _BY_KIND:
            return self.default
        if self.is_array:
            return []
        if self.structure is not None:
            return self.structure()
        assert self.kind is not None
        return self.kind.default

    @property
    def default_is_fresh(self) -> bool:
        """Whether the default has to be made anew each time."""
        return self.default is _BY_KIND and (self.is_array or self.structure is not None)

    @property
    def is_fixed(self) -> bool:
        """Whether the field takes the same number of bytes whatever it holds."""
        return not self.is_array and self.kind is not None and self.kind.size > 0


def field(
    kind: Kind,
    versions: str = "0+",
    *,
    nullable: str | None = None,
    default: object = _BY_KIND,
    tag: int | None = None,
    tagged: str | None = None,
    ignorable: bool = False,
) -> Any:
    """A primitive. `tagged` is the range in which a field with a `tag` travels as a tagged one: by default
    all its versions."""
    return FieldSpec(kind, None, False, versions, nullable, default, tag, tagged, ignorable)


def array(
    element: Kind | type,
    versions: str = "0+",
    *,
    nullable: str | None = None,
    default: object = _BY_KIND,
    tag: int | None = None,
    tagged: str | None = None,
    ignorable: bool = False,
) -> Any:
    """A list of primitives or structures; empty by default."""
    kind, structure = (element, None) if isinstance(element, Kind) else (None, element)
    return FieldSpec(kind, structure, True, versions, nullable, default, tag, tagged, ignorable)


def struct(
    structure: type,
    versions: str = "0+",
    *,
    nullable: str | None = None,
    default: object = _BY_KIND,
    tag: int | None = None,
    tagged: str | None = None,
    ignorable: bool = False,
) -> Any:
    """A nested structure; one of defaults by default."""
    return FieldSpec(None, structure, False, versions, nullable, default, tag, tagged, ignorable)


class Message:
    """What the decorators put on a message. `API_KEY` is -1 on headers and on data that has no key."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    KIND: ClassVar[str]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE: ClassVar[int]
    """The first flexible version; MAX_VERSION of Kafka's version numbers, 32767, when there is none."""
    FREQUENT: ClassVar[bool]
    """Whether it comes so often that straight-line codecs are worth making."""


def specs_of(cls: type) -> list[FieldSpec]:
    """The field specifications of a message or structure in the order of the wire."""
    specs: list[FieldSpec] = cls.__field_specs__  # type: ignore[attr-defined]
    return specs


@dataclass_transform()
def structure(cls: type[T]) -> type[T]:
    """Make a class with fields a structure: the element of an array, or a field of a message."""
    if "__dataclass_fields__" in cls.__dict__:
        raise TypeError(f"{cls.__name__}: a message or structure is made a dataclass by its own decorator")
    specs = []
    namespace: dict[str, Any] = {}
    for name, value in cls.__dict__.items():
        if isinstance(value, FieldSpec):
            value.name = name
            specs.append(value)
        elif name not in ("__dict__", "__weakref__"):
            namespace[name] = value
    names = tuple(spec.name for spec in specs)
    namespace["__slots__"] = names
    namespace["__match_args__"] = names
    namespace["__field_specs__"] = specs
    namespace["__init__"] = _make_constructor
    namespace["__dataclass_fields__"] = _DATACLASS_FIELDS
    namespace["__eq__"] = _equal
    namespace["__repr__"] = _repr
    namespace["__values__"] = attrgetter(*names) if names else _no_values
    made: Any = type(cls.__name__, cls.__bases__, namespace)
    return made  # type: ignore[no-any-return]


@dataclass_transform()
def message(
    *,
    api_key: int = -1,
    kind: str,
    versions: tuple[int, int],
    flexible: int | None = None,
    frequent: bool = False,
) -> Callable[[type[T]], type[T]]:
    """Make a class a message. `kind` is request, response, header or data; `flexible` the first flexible
    version."""

    def decorate(cls: type[T]) -> type[T]:
        made = structure(cls)
        attributes: Any = made
        attributes.API_KEY = api_key
        attributes.KIND = kind
        attributes.MIN_VERSION, attributes.MAX_VERSION = versions
        attributes.FLEXIBLE = MAX_VERSION if flexible is None else flexible
        attributes.FREQUENT = frequent
        return made

    return decorate


@dataclass_transform()
def record(
    *, api_key: int = -1, versions: tuple[int, int], flexible: int | None = None
) -> Callable[[type[T]], type[T]]:
    """Make a class a record of a log: cluster metadata, or the key or value of an internal topic."""
    return message(api_key=api_key, kind="data", versions=versions, flexible=flexible)


def finish(cls: type) -> None:
    """Give the class its constructor."""
    if cls.__init__ is not _make_constructor:  # type: ignore[misc]
        return
    given: dict[str, Any] = {"_fresh": _BY_KIND}
    parameters, body = ["self"], []
    for number, spec in enumerate(specs_of(cls)):
        name = spec.name
        if spec.default_is_fresh:
            given[f"_make_{number}"] = list if spec.is_array else spec.structure
            parameters.append(f"{name}=_fresh")
            body.append(f" self.{name} = _make_{number}() if {name} is _fresh else {name}")
        else:
            given[f"_default_{number}"] = spec.fresh_default()
            parameters.append(f"{name}=_default_{number}")
            body.append(f" self.{name} = {name}")
    text = f"def __init__({', '.join(parameters)}):\n" + ("\n".join(body) or " pass")
    exec(code_of(text, "<constructor>"), given)
    constructor = given["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    attributes: Any = cls
    attributes.__init__ = constructor


class _DataclassFields:
    """What `dataclasses.fields` and `replace` look for, made when they do."""

    def __get__(self, instance: object, cls: type) -> Any:
        import dataclasses

        fields: list[tuple[str, Any, Any]] = []
        for spec in specs_of(cls):
            if spec.default_is_fresh:
                fields.append((spec.name, Any, dataclasses.field(default_factory=spec.fresh_default)))
            else:
                fields.append((spec.name, Any, dataclasses.field(default=spec.fresh_default())))
        surrogate: Any = dataclasses.make_dataclass(
            cls.__name__,
            fields,
            repr=False,
            eq=False,
            match_args=False,
            namespace={
                "__doc__": ""
            },  # else it makes one up from the signature, which takes longer than all the rest
        )
        attributes: Any = cls
        attributes.__dataclass_fields__ = surrogate.__dataclass_fields__
        return surrogate.__dataclass_fields__


_DATACLASS_FIELDS = _DataclassFields()


def _make_constructor(self: Any, *args: Any, **values: Any) -> None:
    finish(type(self))
    self.__init__(*args, **values)


def _no_values(_: Any) -> tuple[()]:
    return ()


def _equal(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    values = type(self).__values__
    return values(self) == values(other)


def _repr(self: Any) -> str:
    inner = ", ".join(f"{spec.name}={getattr(self, spec.name)!r}" for spec in specs_of(type(self)))
    return f"{type(self).__qualname__}({inner})"
