"""Hostile and broken input as plain bytes, each with what must come of it.

`BAD_INPUTS` holds what goes wrong before a request is understood: lengths, headers, arrays, tagged fields, other
protocols. Produce requests whose batches are wrong are in bad_batches.py. The bytes are made when asked for,
because some are many megabytes.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ottla.wire.api_keys import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.headers import RequestHeader, encode_request_header
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.primitives import unsigned_varint
from ottla.wire.schema import encode

TOPIC = "bad-input"
CORRELATION_ID = 77
CLIENT_ID = "hostile"
MAX_FRAME_BYTES = 104_857_600  # the default of socket.request.max.bytes


class Fate(Enum):
    """What becomes of a connection that is told nothing."""

    CLOSED = "the broker closes it, with one line in its log"
    WAITS = "the broker waits for the rest, and closes it when the client has no more to say"


@dataclass(frozen=True, slots=True)
class BadInput:
    """Bytes for a fresh connection, and what must happen to it."""

    name: str
    make: Callable[[], bytes]
    fate: Fate = Fate.CLOSED
    log_says: str = ""  # part of the one log line
    kafka_says: str = ""  # where Apache Kafka 4.3.0 does otherwise


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def header(api_key: int, api_version: int, client_id: bytes | None = CLIENT_ID.encode()) -> bytes:
    """A request header without tagged fields, for keys and versions that need not exist."""
    encoded = struct.pack(">hhi", api_key, api_version, CORRELATION_ID)
    return encoded + (b"\xff\xff" if client_id is None else struct.pack(">h", len(client_id)) + client_id)


def request(message: object, version: int) -> bytes:
    """A well-formed request in its frame."""
    api_key = type(message).API_KEY  # type: ignore[attr-defined]
    head = encode_request_header(RequestHeader(api_key, version, CORRELATION_ID, CLIENT_ID))
    return frame(head + encode(message, version))


def metadata_v1(body: bytes) -> bytes:
    return frame(header(ApiKey.METADATA, 1) + body)


def metadata_v9(body: bytes, header_tags: bytes = b"\0") -> bytes:
    """A flexible request: the header ends in tagged fields."""
    return frame(header(ApiKey.METADATA, 9) + header_tags + body)


METADATA_V9_BODY = encode(MetadataRequest(topics=[]), 9)[:-1]  # without the tagged fields at its end


def equal_tags(count: int) -> bytes:
    """Two bytes a field, the cheapest to send: the same tag again and again."""
    return unsigned_varint(count) + b"\x09\x00" * count


def ascending_tags(count: int) -> bytes:
    """A section that is well-formed and full of fields that nobody knows."""
    return unsigned_varint(count) + b"".join(unsigned_varint(100 + tag) + b"\0" for tag in range(count))


def garbage(length: int) -> bytes:
    return random.Random(length).randbytes(length)


TLS_CLIENT_HELLO = bytes.fromhex("160301020001 0001fc0303".replace(" ", "")) + garbage(506)

BAD_INPUTS = [
    # Lengths of frames.
    BadInput("garbage", lambda: b"\xde\xad\xbe\xef" + garbage(2000), log_says="negative frame length"),
    BadInput("garbage in a frame", lambda: frame(b"\x7f" + garbage(999)), log_says="api key"),
    BadInput("zero length", lambda: frame(b""), log_says="header"),
    BadInput("negative length", lambda: struct.pack(">i", -1), log_says="negative frame length -1"),
    BadInput("smallest length", lambda: struct.pack(">i", -(2**31)), log_says="negative frame length"),
    BadInput("greatest length", lambda: struct.pack(">i", 2**31 - 1), log_says="socket.request.max.bytes"),
    BadInput(
        "one byte over the limit",
        lambda: struct.pack(">i", MAX_FRAME_BYTES + 1),
        log_says="socket.request.max.bytes",
    ),
    BadInput("part of a length", lambda: b"\x00\x00", Fate.WAITS),
    BadInput("part of a frame", lambda: frame(header(ApiKey.METADATA, 1) + bytes(100))[:50], Fate.WAITS),
    BadInput("a byte of the largest frame", lambda: struct.pack(">ib", MAX_FRAME_BYTES, 0), Fate.WAITS),
    # Headers.
    BadInput("part of a header", lambda: frame(bytes(6)), log_says="header"),
    BadInput("unknown api key", lambda: frame(header(999, 0)), log_says="999"),
    BadInput("negative api key", lambda: frame(header(-1, 0)), log_says="-1"),
    BadInput("a key for controllers", lambda: frame(header(52, 0) + bytes(50)), log_says="52"),
    BadInput(
        "version above", lambda: frame(header(ApiKey.METADATA, 99) + b"\0"), log_says="METADATA version 99"
    ),
    BadInput("version below", lambda: frame(header(ApiKey.FETCH, 3)), log_says="FETCH version 3"),
    BadInput("produce of old", lambda: frame(header(ApiKey.PRODUCE, 2)), log_says="PRODUCE version 2"),
    BadInput("negative version", lambda: frame(header(ApiKey.METADATA, -1)), log_says="METADATA version -1"),
    BadInput("client id beyond the frame", lambda: frame(header(3, 1, b"")[:-2] + b"\x7f\xff" + b"x")),
    BadInput(
        "negative client id",
        lambda: frame(header(3, 1, b"")[:-2] + b"\xff\xf0" + bytes(9)),
        kafka_says="every negative length is null",
    ),
    # Arrays and strings.
    BadInput("more topics than bytes", lambda: metadata_v1(struct.pack(">i", 2**31 - 1)), log_says="topics"),
    BadInput("compact count beyond bytes", lambda: metadata_v9(b"\xff\xff\xff\xff\x07"), log_says="topics"),
    BadInput(
        "negative count",
        lambda: metadata_v1(struct.pack(">i", -2)),
        log_says="topics",
        kafka_says="every negative length is null",
    ),
    BadInput("count of six bytes", lambda: metadata_v9(b"\xff" * 5 + b"\x01"), log_says="topics"),
    BadInput("string beyond the frame", lambda: metadata_v1(struct.pack(">ih", 1, 30_000) + b"x" * 10)),
    BadInput(
        "a name that grows when it is sent back",
        lambda: metadata_v1(struct.pack(">ih", 1, 20_000) + b"\xff" * 20_000),
        log_says="UTF-8",
    ),
    BadInput(
        "a compact name that grows",
        lambda: metadata_v9(b"\x02" + unsigned_varint(20_001) + b"\xff" * 20_000 + bytes(5)),
        log_says="UTF-8",
    ),
    BadInput("negative string", lambda: metadata_v1(struct.pack(">ih", 1, -7))),
    BadInput("null where none may be", lambda: metadata_v1(struct.pack(">ih", 1, -1))),
    BadInput("a body too short", lambda: metadata_v9(METADATA_V9_BODY[:-1])),
    BadInput(
        "12 million empty names", lambda: metadata_v1(struct.pack(">i", 12_000_000) + bytes(24_000_000))
    ),
    # Tagged fields.
    BadInput(
        "20 million tags in the header", lambda: metadata_v9(b"", equal_tags(20_000_000)), log_says="tag"
    ),
    BadInput(
        "20 million tags in the body",
        lambda: metadata_v9(METADATA_V9_BODY + equal_tags(20_000_000)),
        log_says="tag",
    ),
    BadInput(
        "300,000 proper tags in the header",
        lambda: metadata_v9(b"", ascending_tags(300_000)),
        log_says="tag",
    ),
    BadInput(
        "300,000 proper tags in the body",
        lambda: metadata_v9(METADATA_V9_BODY + ascending_tags(300_000)),
        log_says="tag",
    ),
    BadInput(
        "the same tag twice",
        lambda: metadata_v9(METADATA_V9_BODY + equal_tags(2)),
        log_says="tag",
        kafka_says="answered",
    ),
    BadInput("more tags than bytes", lambda: metadata_v9(METADATA_V9_BODY + b"\x09\x00\x00"), log_says="tag"),
    BadInput(
        "a tag beyond the frame", lambda: metadata_v9(METADATA_V9_BODY + b"\x01\x09\x7f"), log_says="tag"
    ),
    # Other protocols.
    BadInput("TLS", lambda: TLS_CLIENT_HELLO, log_says="TLS"),
    BadInput("HTTP", lambda: b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", log_says="HTTP"),
    BadInput("HTTP POST", lambda: b"POST /topics HTTP/1.1\r\nHost: broker\r\n\r\n", log_says="HTTP"),
    BadInput("SSH", lambda: b"SSH-2.0-OpenSSH_9.6\r\n", log_says="SSH"),
]

API_VERSIONS_OF_THE_FUTURE = frame(header(ApiKey.API_VERSIONS, 99) + b"\x00" + garbage(40))
API_VERSIONS_ERROR = ErrorCode.UNSUPPORTED_VERSION
