"""What a declaration means: versions, defaults, nullability, tags, and what a version cannot say."""

import copy
import dataclasses
from typing import Any

import pytest

from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UINT32,
    UUID,
    Message,
    VersionRange,
    array,
    decode,
    decoder,
    encode,
    encoder,
    field,
    message,
    record,
    struct,
    structure,
)


@structure
class Point:
    x: int = field(INT32)
    y: int = field(INT32, "1+", default=-1)
    label: str | None = field(STRING, "2+", nullable="2+", default=None, tag=3, ignorable=True)


@message(api_key=99, kind="request", versions=(0, 3), flexible=2)
class Shape(Message):
    name: str = field(STRING, ignorable=True)
    origin: Point = struct(Point)
    corners: list[Point] = array(Point, "1+", nullable="2+")
    centre: Point | None = struct(Point, "2+", nullable="3+", default=None, ignorable=True)
    weight: int = field(INT32, "3+", default=7, tag=0)
    colour: str = field(STRING, "1-2", default="black", ignorable=True)


@record(api_key=5, versions=(0, 0), flexible=0)
class Everything(Message):
    int8: int = field(INT8)
    int16: int = field(INT16)
    uint16: int = field(UINT16)
    int32: int = field(INT32)
    uint32: int = field(UINT32)
    int64: int = field(INT64)
    float64: float = field(FLOAT64)
    truth: bool = field(BOOL)
    uuid: bytes = field(UUID)
    string: str = field(STRING)
    data: bytes = field(BYTES)
    uuids: list[bytes] = array(UUID)
    strings: list[str] = array(STRING)
    datas: list[bytes] = array(BYTES)
    doubles: list[float] = array(FLOAT64)


def test_golden_bytes_of_every_kind() -> None:
    """Big-endian numbers, compact lengths, one count of tagged fields at the end."""
    everything = Everything(
        -1,
        -2,
        65535,
        -3,
        2**32 - 1,
        -4,
        1.5,
        True,
        b"0123456789abcdef",
        "é",
        b"\0",
        [b"u" * 16],
        ["s"],
        [b"b"],
        [2.0],
    )
    data = bytes.fromhex("ff fffe ffff fffffffd ffffffff fffffffffffffffc 3ff8000000000000 01")
    data += b"0123456789abcdef" + b"\x03\xc3\xa9" + b"\x02\0"
    data += b"\x02" + b"u" * 16 + b"\x02\x02s" + b"\x02\x02b" + bytes.fromhex("02 4000000000000000") + b"\0"
    assert encode(everything, 0) == data
    assert decode(Everything, 0, data) == everything


def test_golden_bytes_of_a_plain_and_a_flexible_version() -> None:
    """The same shape with plain lengths, and with compact ones and tagged fields."""
    shape = Shape("a", Point(1, 2), [Point(3, 4)])
    assert (
        encode(shape, 1)
        == bytes.fromhex("0001 61 00000001 00000002 00000001 00000003 00000004 0005") + b"black"
    )
    shape.origin.label = "p"
    shape.weight = 8
    shape.centre = None
    assert encode(shape, 3) == (
        b"\x02a" + bytes.fromhex("00000001 00000002 01 03 02 02") + b"p"
        + bytes.fromhex("02 00000003 00000004 00 ff 01 00 04 00000008")
    )  # fmt: skip


def test_class_facts() -> None:
    """What the decorator says of the message."""
    assert (Shape.API_KEY, Shape.KIND, Shape.MIN_VERSION, Shape.MAX_VERSION, Shape.FLEXIBLE) == (
        99,
        "request",
        0,
        3,
        2,
    )
    assert Everything.KIND == "data"


def test_defaults_of_absent_fields() -> None:
    """Fields that a version lacks get their defaults, wherever they stand."""
    shape = decode(Shape, 0, encode(Shape("a", Point(5)), 0))
    assert shape == Shape("a", Point(5, -1, None), [], None, 7, "black")


def test_value_that_a_version_cannot_say() -> None:
    """Anything but the default of a field that is not there is refused, unless the field is ignorable."""
    with pytest.raises(KafkaError, match="Shape version 2 cannot say weight=8") as caught:
        encode(Shape(weight=8, centre=Point()), 2)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(KafkaError, match="Point version 0 cannot say y=3"):
        encode(Shape(origin=Point(1, 3)), 0)
    assert decode(Shape, 1, encode(Shape(colour="red", centre=Point(9)), 1)) == Shape(colour="red")


def test_null_that_a_version_cannot_say() -> None:
    """None in a field that is not nullable, or not yet, is our own mistake."""
    broken: Any = Shape(name=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="name: null"):
        encode(broken, 1)
    with pytest.raises(ValueError, match="corners: null"):
        encode(Shape(corners=None), 1)  # type: ignore[arg-type]
    assert decode(Shape, 3, encode(Shape(corners=None), 3)).corners is None  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [-1, 4])
def test_version_out_of_range(version: int) -> None:
    """There is no codec for a version that the message does not have."""
    for make in (decoder, encoder):
        with pytest.raises(KafkaError, match=f"Shape has no version {version}"):
            make(Shape, version)


def test_codecs_are_kept() -> None:
    """The second call returns what the first one compiled."""
    assert decoder(Shape, 1) is decoder(Shape, 1)
    assert encoder(Shape, 1) is encoder(Shape, 1)


def test_instances_behave_like_dataclasses() -> None:
    """Construction by position and name, equality, repr, copies, and no misspelt attributes."""
    point = Point(1, y=2)
    assert point == Point(1, 2, None)
    assert point != Point(1, 3)
    assert point != (1, 2, None)
    assert repr(point) == "Point(x=1, y=2, label=None)"
    assert dataclasses.replace(point, x=4) == Point(4, 2)
    assert copy.deepcopy(Shape(corners=[point])) == Shape(corners=[point])
    with pytest.raises(AttributeError):
        point.z = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Point(z=1)  # type: ignore[call-arg]


def test_dataclass_below_the_decorator_is_refused() -> None:
    """Fields would be lost otherwise."""
    with pytest.raises(TypeError, match="Wrong: "):

        @structure
        @dataclasses.dataclass
        class Wrong:
            x: int = 0


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("0+", [0, 5, 32767], []), ("2-4", [2, 3, 4], [1, 5]), ("7", [7], [6, 8]), ("none", [], [0, 1, 2])],
)
def test_version_ranges(text: str, inside: list[int], outside: list[int]) -> None:
    """Ranges are written as in Kafka's definitions, and shown the same way."""
    versions = VersionRange(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)
    assert repr(versions) == text
    assert versions == VersionRange(text)


def test_elements_with_tagged_fields_among_even_ones() -> None:
    """Elements of one width are read in one go only when none of them has tagged fields."""
    corners = [Point(index, index, "l" if index == 3 else None) for index in range(6)]
    shape = Shape(corners=corners, centre=Point())
    assert decode(Shape, 2, encode(shape, 2)) == shape


def test_very_many_elements_are_the_same_bytes() -> None:
    """Parts that are joined on the way are those that are joined in the end."""
    corners = [Point(number, -number, f"label {number}") for number in range(10_000)]
    shape = Shape(name="large", corners=corners)
    data = encode(shape, 3)
    assert decode(Shape, 3, data) == shape
    few = encode(Shape(name="large", corners=corners[:10]), 3)
    assert data.startswith(few[:14])
    one = encode(Shape(name="large", corners=corners[-1:]), 3)
    assert data.endswith(one[-20:])
