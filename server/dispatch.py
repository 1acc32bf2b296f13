"""From a frame to the chunks of its answer: header, version check, decode, handler, encode.

The boundary where errors are sorted: what a peer got wrong closes that connection with one line
(`CloseConnection`); anything else that escapes a handler, or an answer that cannot be encoded, is a bug of ours,
logged with its traceback, and closes that connection too, so that the client retries instead of reading a made-up
answer.
"""

import logging
from collections.abc import Coroutine
from types import CoroutineType
from typing import Any

import trio

from ottla.server.context import RequestContext
from ottla.server.output import Outbox
from ottla.server.registry import Registration, Registry
from ottla.server.turns import QUICK_ELEMENTS
from ottla.wire.api_keys import ApiKey
from ottla.wire.chunks import Chunk
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage, TooManyElements
from ottla.wire.headers import RequestHeader, decode_request_header, encode_response_header
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

log = logging.getLogger("ottla.server")


class CloseConnection(Exception):
    """This connection cannot go on; the text is the one log line about it."""


class PeerGone(OSError):
    """The client left while answers were sent to it."""


class Dispatcher:
    """Answers the frames of one connection."""

    __slots__ = ("_context", "_registry")

    def __init__(self, registry: Registry, context: RequestContext) -> None:
        self._registry = registry
        self._context = context

    def connection_closed(self) -> None:
        """Let go of what was kept for the connection."""
        for key, let_go in self._context.on_close.items():
            try:
                let_go()
            except Exception:
                log.exception("not let go of key=%s", key)

    async def answer(self, frame: memoryview, outbox: Outbox) -> None:
        """Handle one request and put its response into the outbox; sent before a handler that has to wait."""
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
                self._refuse_api_versions(registration, header, outbox)
                return
            raise CloseConnection(f"{registration.api_key.name} version {version} is not supported")
        context = self._context
        context.has_many_elements = False
        try:
            try:
                request = registration.decode(version, frame, position, QUICK_ELEMENTS)
            except TooManyElements:
                context.has_many_elements = True
                decoding = trio.to_thread.run_sync(registration.decode, version, frame, position)
                request = await _after_flush(outbox, decoding)
        except MalformedMessage as error:
            name = registration.request_type.__name__
            raise CloseConnection(
                f"malformed {name} v{version} client_id={header.client_id!r}: {error}"
            ) from None
        context.api_version = version
        context.client_id = header.client_id
        context.correlation_id = header.correlation_id
        try:
            response = registration.function(context, request)
            if type(response) is CoroutineType:
                response = await _after_flush(outbox, response)
            if response is not None:
                if context.has_many_elements:
                    add = trio.to_thread.run_sync(
                        self._add_response, registration, header, version, response, outbox
                    )
                    await _after_flush(outbox, add)
                else:
                    self._add_response(registration, header, version, response, outbox)
        except (CloseConnection, PeerGone):
            raise
        except Exception:
            log.exception(
                "request failed api=%s version=%d client_id=%r correlation_id=%d",
                registration.api_key.name,
                version,
                header.client_id,
                header.correlation_id,
            )
            raise CloseConnection(f"internal error in {registration.api_key.name}") from None

    def _add_response(
        self, registration: Registration, header: RequestHeader, version: int, response: Any, outbox: Outbox
    ) -> None:
        chunks: list[Chunk] = [encode_response_header(registration.api_key, version, header.correlation_id)]
        registration.encode(version, response, chunks)
        outbox.add_frame(chunks)

    def _refuse_api_versions(self, registration: Registration, header: RequestHeader, outbox: Outbox) -> None:
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
        self._add_response(registration, header, 0, response, outbox)


async def _after_flush(outbox: Outbox, waiting: Coroutine[Any, Any, Any]) -> Any:
    """Send the answers that are ready, so that they do not wait for this one."""
    try:
        await outbox.flush()
    except OSError as error:
        waiting.close()
        raise PeerGone(str(error)) from error
    except BaseException:
        waiting.close()
        raise
    return await waiting
