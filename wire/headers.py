"""The header in front of each request and response.

Request header version 1 is api key, api version, correlation id and a nullable client id; version 2, for
flexible requests, adds tagged fields. The client id keeps its int16 length in both. Response header version
0 is the correlation id, version 1 adds tagged fields. ApiVersions responses always have version 0, whatever
their own version: a client reads them before it knows what the broker can do (KIP-511).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ottla.wire.api_keys import FIRST_FLEXIBLE, ApiKey
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.wire.primitives import skip_tagged_fields

_REQUEST = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class UnknownApiKey(KafkaError):
    """A request of a key that has no versions; the rest of its header cannot be read."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, f"unknown api key {api_key}")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


def decode_request_header(buf: memoryview, pos: int = 0) -> tuple[RequestHeader, int]:
    """The header and the position of the body. The api version is not checked: the header is readable in
    any."""
    try:
        api_key, api_version, correlation_id, client_id_length = _REQUEST.unpack_from(buf, pos)
    except struct.error:
        raise MalformedMessage(f"{len(buf) - pos} bytes are too few for a request header") from None
    first_flexible = FIRST_FLEXIBLE.get(api_key)
    if first_flexible is None:
        raise UnknownApiKey(api_key, api_version, correlation_id)
    pos += _REQUEST.size
    client_id = None
    if client_id_length >= 0:
        end = pos + client_id_length
        if end > len(buf):
            detail = f"string of {client_id_length} bytes, {len(buf) - pos} bytes left"
            raise MalformedMessage(detail, "client_id")
        client_id = str(buf[pos:end], "utf-8", "replace")
        pos = end
    elif client_id_length != -1:
        raise MalformedMessage(f"length {client_id_length}", "client_id")
    if api_version >= first_flexible:
        pos = _skip_header_tags(buf, pos)
    return RequestHeader(api_key, api_version, correlation_id, client_id), pos


def encode_request_header(header: RequestHeader) -> bytes:
    client_id = None if header.client_id is None else header.client_id.encode()
    length = -1 if client_id is None else len(client_id)
    encoded = _REQUEST.pack(header.api_key, header.api_version, header.correlation_id, length)
    encoded += client_id or b""
    return encoded + b"\0" if header.api_version >= FIRST_FLEXIBLE[header.api_key] else encoded


def response_header_is_flexible(api_key: int, api_version: int) -> bool:
    return api_key != ApiKey.API_VERSIONS and api_version >= FIRST_FLEXIBLE[api_key]


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    encoded = _CORRELATION_ID.pack(correlation_id)
    return encoded + b"\0" if response_header_is_flexible(api_key, api_version) else encoded


def decode_response_header(api_key: int, api_version: int, buf: memoryview, pos: int = 0) -> tuple[int, int]:
    """Correlation id and the position of the body."""
    try:
        correlation_id: int = _CORRELATION_ID.unpack_from(buf, pos)[0]
    except struct.error:
        raise MalformedMessage(f"{len(buf) - pos} bytes are too few for a response header") from None
    pos += _CORRELATION_ID.size
    if response_header_is_flexible(api_key, api_version):
        pos = _skip_header_tags(buf, pos)
    return correlation_id, pos


def _skip_header_tags(buf: memoryview, pos: int) -> int:
    try:
        return skip_tagged_fields(buf, pos)
    except IndexError:
        raise MalformedMessage("the bytes end early", "header tags") from None
    except MalformedMessage as error:
        raise error.within("header tags") from None
