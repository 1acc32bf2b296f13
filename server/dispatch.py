"""From a frame to the chunks of its answer: header, version check, decode, handler, encode.

The boundary where errors are sorted: what a peer got wrong closes that connection with one line
(`CloseConnection`); anything else that escapes a handler, or an answer that cannot be encoded, is a bug of ours,
logged with its traceback, and closes that connection too, so that the client retries instead of reading a made-up
answer.
"""

import logging
from types import CoroutineType
from typing import Any

from ottla.server.context import RequestContext
from ottla.server.registry import Registration, Registry
from ottla.wire.api_keys import ApiKey
from ottla.wire.chunks import Chunk
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.wire.headers import RequestHeader, decode_request_header, encode_response_header
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

log = logging.getLogger("ottla.server")


class CloseConnection(Exception):
    """This connection cannot go on; the text is the one log line about it."""


class Dispatcher:
    """Answers the frames of one connection."""

    __slots__ = ("_context", "_registry")

    def __init__(self, registry: Registry, context: RequestContext) -> None:
        self._registry = registry
        self._context = context

    async def answer(self, frame: memoryview, out: list[Chunk]) -> int:
        """Handle one request, append its framed response to `out`, and return how many bytes that is."""
        try:
            header, position = decode_request_header(frame)
        except (MalformedMessage, KafkaError) as error:
            raise CloseConnection(f"bad request header: {error}") from None
        registration = self._registry.get(header.api_key)
        version = header.api_version
        if registration is None:
            raise CloseConnection(f"API key {header.api_key} is not served")
        if not registration.min_version <= version <= registration.max_version:
            if header.api_key == ApiKey.API_VERSIONS:
                return self._refuse_api_versions(registration, header, out)
            raise CloseConnection(f"{registration.api_key.name} version {version} is not supported")
        try:
            request = registration.decode(version, frame, position)
        except MalformedMessage as error:
            name = registration.request_type.__name__
            raise CloseConnection(
                f"malformed {name} v{version} client_id={header.client_id!r}: {error}"
            ) from None
        context = self._context
        context.api_version = version
        context.client_id = header.client_id
        context.correlation_id = header.correlation_id
        return await self._handle(registration, header, request, out)

    async def _handle(
        self, registration: Registration, header: RequestHeader, request: Any, out: list[Chunk]
    ) -> int:
        try:
            response = registration.function(self._context, request)
            if type(response) is CoroutineType:
                response = await response
            if response is None:
                return 0
            return self._append_response(registration, header, header.api_version, response, out)
        except CloseConnection:
            raise
        except Exception:
            log.exception(
                "request failed api=%s version=%d client_id=%r correlation_id=%d",
                registration.api_key.name,
                header.api_version,
                header.client_id,
                header.correlation_id,
            )
            raise CloseConnection(f"internal error in {registration.api_key.name}") from None

    def _append_response(
        self, registration: Registration, header: RequestHeader, version: int, response: Any, out: list[Chunk]
    ) -> int:
        chunks: list[Chunk] = [encode_response_header(registration.api_key, version, header.correlation_id)]
        registration.encode(version, response, chunks)
        size = sum(map(len, chunks))
        out.append(size.to_bytes(4, "big"))
        out.extend(chunks)
        return size + 4

    def _refuse_api_versions(
        self, registration: Registration, header: RequestHeader, out: list[Chunk]
    ) -> int:
        """An unknown ApiVersions version is answered in version 0, naming the range that works (KIP-511)."""
        response = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersion(
                    api_key=registration.api_key,
                    min_version=registration.min_version,
                    max_version=registration.max_version,
                )
            ],
        )
        return self._append_response(registration, header, 0, response, out)
