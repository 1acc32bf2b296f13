"""The front door of the codecs: declare messages, and turn them into bytes and back.

`decoder` and `encoder` compile a message for one version at the first call and keep the result. What they
return are closures in which each run of fixed-width fields is one precompiled `struct.Struct`; there is one
decode and one encode closure per structure and version, none per field of a run. Messages that are `frequent` have
straight-line codecs in front of these, for what is ordinary. The connection loop keeps the closures; everything else
may use `decode` and `encode`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import error as StructError
from typing import Any, TypeVar

from ottla.wire.chunks import Chunk, FileSlice, join_chunks
from ottla.wire.compile_decode import MAX_ORDINARY_ELEMENTS, Elements, budget, compile_decoder
from ottla.wire.compile_encode import compile_encoder, parts_adder
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage, NotOrdinary, TooManyElements
from ottla.wire.fields import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UINT16,
    UINT32,
    UUID,
    FieldSpec,
    Kind,
    Message,
    VersionRange,
    array,
    field,
    message,
    record,
    specs_of,
    struct,
    structure,
)

__all__ = [
    "BOOL",
    "BYTES",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "RECORDS",
    "STRING",
    "UINT16",
    "UINT32",
    "UUID",
    "Chunk",
    "FieldSpec",
    "FileSlice",
    "Kind",
    "Message",
    "VersionRange",
    "array",
    "decode",
    "decode_bounded",
    "decoder",
    "encode",
    "encode_chunks",
    "encoder",
    "field",
    "message",
    "prepare_codecs",
    "record",
    "specs_of",
    "struct",
    "structure",
]

T = TypeVar("T")

# What the quick codecs give up with: the thorough ones say what is wrong, if anything is.
_NOT_ORDINARY = (NotOrdinary, MalformedMessage, IndexError, StructError, TypeError, AttributeError)


@cache
def _decoder(cls: Any, version: int) -> Callable[[memoryview, int], tuple[Any, int]]:
    _check_version(cls, version)
    return compile_decoder(cls, version, version >= cls.FLEXIBLE)


@cache
def _quick_decoder(cls: Any, version: int) -> Callable[[memoryview, int], Any] | None:
    if not cls.FREQUENT:
        return None
    from ottla.wire.straight_line import straight_decoder

    _check_version(cls, version)
    return straight_decoder(cls, version)


@cache
def _encoder(cls: Any, version: int) -> Callable[[Any, list[Chunk]], None]:
    _check_version(cls, version)
    thorough = compile_encoder(cls, version, version >= cls.FLEXIBLE)
    if not cls.FREQUENT:
        return thorough
    from ottla.wire.straight_line import straight_encoder

    quick = straight_encoder(cls, version)
    add_parts = parts_adder(cls, version)

    def encode(obj: Any, chunks: list[Chunk]) -> None:
        try:
            parts = quick(obj)
        except _NOT_ORDINARY:
            thorough(obj, chunks)
        else:
            add_parts(parts, chunks)

    return encode


def prepare_codecs(request: Any, response: Any, version: int) -> None:
    """Compile what reads a request and writes its response, as the first use would."""
    _decoder(request, version)
    _quick_decoder(request, version)
    _encoder(response, version)


def _check_version(cls: Any, version: int) -> None:
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{cls.__name__} has no version {version}")


def decoder(cls: type[T], version: int) -> Callable[[memoryview, int], tuple[T, int]]:
    """`(buffer, position) -> (message, position behind it)`; MalformedMessage when the bytes are not one."""
    key: Any = cls
    return _decoder(key, version)


def encoder(cls: type[T], version: int) -> Callable[[T, list[Chunk]], None]:
    """Appends the message's chunks to a list; KafkaError when it holds what the version cannot say."""
    key: Any = cls
    return _encoder(key, version)


def decode(cls: type[T], version: int, buf: bytes | bytearray | memoryview) -> T:
    """The message that fills the whole buffer."""
    view = memoryview(buf)
    decoded, end = decoder(cls, version)(view, 0)
    if end != len(view):
        raise MalformedMessage(f"{len(view) - end} bytes behind the end of {cls.__name__}")
    return decoded


def decode_bounded(cls: type[T], version: int, buf: memoryview, pos: int, max_elements: int) -> T:
    """The message at `pos`, of a stranger: TooManyElements when its arrays have more elements in all."""
    key: Any = cls
    quick = _quick_decoder(key, version)
    if quick is not None and max_elements >= MAX_ORDINARY_ELEMENTS:
        try:
            ordinary: T = quick(buf, pos)
            return ordinary
        except _NOT_ORDINARY:
            pass  # the thorough way knows what it is
    if len(buf) - pos <= max_elements:  # every element has a byte at least
        return decoder(cls, version)(buf, pos)[0]
    elements = Elements()
    elements.left = max_elements
    before = budget.set(elements)
    try:
        return decoder(cls, version)(buf, pos)[0]
    except MalformedMessage as error:
        if elements.left < 0:
            raise TooManyElements(error.detail, error.path) from None
        raise
    finally:
        budget.reset(before)


def encode_chunks(obj: object, version: int) -> list[Chunk]:
    """The message as chunks to send."""
    chunks: list[Chunk] = []
    encoder(type(obj), version)(obj, chunks)
    return chunks


def encode(obj: object, version: int) -> bytes:
    """The message as bytes, file slices read in."""
    return join_chunks(encode_chunks(obj, version))
