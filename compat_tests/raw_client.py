"""A small blocking client on Ottla's own codecs: any request, any version, no client library between.

Differential tests send the same request to Ottla and to Apache Kafka and compare the answers field by field.
`plain` turns an answer into dictionaries and lists, so that what must differ between brokers can be replaced
by a word before comparing.
"""

import dataclasses
import socket
import struct
import sys
from collections.abc import Mapping
from typing import Any, Self

from ottla.wire.headers import RequestHeader, decode_response_header, encode_request_header
from ottla.wire.schema import decode, encode

CLIENT_ID = "raw-client"


class ConnectionClosed(RuntimeError):
    """The broker closed the connection instead of answering."""


class RawClient:
    """One connection to one broker."""

    def __init__(self, host: str, port: int, timeout_seconds: float = 30) -> None:
        self._socket = socket.create_connection((host, port), timeout_seconds)
        self._stream = self._socket.makefile("rb")
        self._correlation_id = 0

    @classmethod
    def to(cls, bootstrap: str) -> Self:
        """A client of the broker at HOST:PORT."""
        host, _, port = bootstrap.rpartition(":")
        return cls(host.strip("[]"), int(port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self._socket.close()

    def send(self, request: Any, version: int, client_id: str | None = CLIENT_ID) -> Any:
        """Send a request message in a version and return the response message."""
        self.send_without_answer(request, version, client_id)
        return self.receive(type(request), version)

    def receive(self, request_type: type[Any], version: int) -> Any:
        """The answer to the last request, which was of this type."""
        frame = memoryview(self.receive_frame())
        correlation_id, position = decode_response_header(request_type.API_KEY, version, frame)
        assert correlation_id == self._correlation_id, "an answer to another request"
        return decode(response_type(request_type), version, frame[position:])

    def send_without_answer(self, request: Any, version: int, client_id: str | None = CLIENT_ID) -> None:
        """Send a request and leave its answer, if it has one, on the connection."""
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, client_id)
        self.send_frame(encode_request_header(header) + encode(request, version))

    def send_frame(self, body: bytes) -> None:
        """Send bytes with their length in front."""
        self.send_bytes(struct.pack(">i", len(body)) + body)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def receive_frame(self) -> bytes:
        """The next frame's bytes without the length."""
        try:
            prefix = self._stream.read(4)
        except ConnectionResetError:
            raise ConnectionClosed from None
        if len(prefix) < 4:
            raise ConnectionClosed
        size: int = struct.unpack(">i", prefix)[0]
        return self._stream.read(size)


def response_type(request_type: type[Any]) -> type[Any]:
    """The response class that stands beside a request class in its module."""
    name = request_type.__name__.removesuffix("Request") + "Response"
    found: type[Any] = getattr(sys.modules[request_type.__module__], name)
    return found


def plain(value: Any, replaced: Mapping[str, object] | None = None) -> Any:
    """Dataclasses as dictionaries, recursively; fields named in `replaced` get that value instead."""
    words = replaced or {}
    if dataclasses.is_dataclass(value):
        return {
            field.name: words[field.name] if field.name in words else plain(getattr(value, field.name), words)
            for field in dataclasses.fields(value)
        }
    if isinstance(value, list):
        return [plain(item, words) for item in value]
    if isinstance(value, memoryview):
        return bytes(value)
    return value
