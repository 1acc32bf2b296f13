"""From a frame to the chunks of its answer: header, version check, decode, handler, encode.

The boundary where errors are sorted: what a peer got wrong closes that connection with one line
(`CloseConnection`); anything else that escapes a handler, or an answer that cannot be encoded, is a bug of ours,
logged with its traceback, and closes that connection too, so that the client retries instead of reading a made-up
answer.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import CoroutineType
from typing import Any

from ottla.server.context import RequestContext
from ottla.server.late_parts import load
from ottla.server.output import Outbox
from ottla.server.own_threads import OwnThreads
from ottla.server.parked import Parked, ParkedAnswer
from ottla.server.quick_answers import QuickAnswer
from ottla.server.registry import Registration, Registry
from ottla.server.turns import QUICK_ELEMENTS
from ottla.wire.api_keys import ApiKey
from ottla.wire.chunks import Chunk
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage, TooManyElements
from ottla.wire.headers import RequestHeader, decode_request_header, encode_response_header
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

log = logging.getLogger("ottla.server")

_CODING = OwnThreads("coding", 1)  # each takes the interpreter from the loop for milliseconds at a time


class CloseConnection(Exception):
    """This connection cannot go on; the text is the one log line about it."""


class PeerGone(OSError):
    """The client left while answers were sent to it."""


class _ParkedRequest(ParkedAnswer):
    """A request whose handler waits, on one connection."""

    __slots__ = ("_dispatcher", "_header", "_parked", "_registration", "max_wait_seconds")

    def __init__(
        self, dispatcher: Dispatcher, registration: Registration, header: RequestHeader, parked: Parked
    ) -> None:
        self._dispatcher = dispatcher
        self._registration = registration
        self._header = header
        self._parked = parked
        self.max_wait_seconds = parked.max_wait_seconds

    def watch(self, wake: Callable[[], None]) -> None:
        self._parked.watch(wake)

    def try_to_answer(self, outbox: Outbox, *, time_is_up: bool) -> bool:
        return self._dispatcher.add_parked(self._registration, self._header, self._parked, time_is_up, outbox)

    def close(self) -> None:
        self._parked.close()


class Dispatcher:
    """Answers the frames of one connection."""

    __slots__ = ("_context", "_quick_answers", "_registry")

    def __init__(
        self,
        registry: Registry,
        context: RequestContext,
        quick_answers: Mapping[int, QuickAnswer] | None = None,
    ) -> None:
        self._registry = registry
        self._context = context
        self._quick_answers = quick_answers or {}

    def connection_closed(self) -> None:
        """Let go of what was kept for the connection."""
        for key, let_go in self._context.on_close.items():
            try:
                let_go()
            except Exception:
                log.exception("not let go of key=%s", key)

    def answer(self, frame: memoryview, outbox: Outbox) -> Coroutine[Any, Any, None] | ParkedAnswer | None:
        """Handle one request and put its response into the outbox. Returns what is left to be awaited when it cannot
        be answered at once; the answers before it are sent first then. The frame must stay as it is until then."""
        if self._quick_answers and len(frame) > 1 and not frame[0]:
            quick_answer = self._quick_answers.get(frame[1])
            if quick_answer is not None:
                answer = quick_answer(frame, outbox)
                if answer:
                    return None if answer is True else answer
        if outbox.settle is not None:
            outbox.settle()
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
                return None
            raise CloseConnection(f"{registration.api_key.name} version {version} is not supported")
        if not registration.is_loaded:
            return self._load_and_answer(registration, header, frame, position, outbox)
        return self._handle(registration, header, frame, position, outbox)

    async def _load_and_answer(
        self,
        registration: Registration,
        header: RequestHeader,
        frame: memoryview,
        position: int,
        outbox: Outbox,
    ) -> None:
        """The first request of its kind: its code is read by a worker thread, while others are served."""
        await _after_flush(outbox, load(registration))
        rest = self._handle(registration, header, frame, position, outbox)
        if isinstance(rest, ParkedAnswer):
            await rest.wait(outbox)
        elif rest is not None:
            await rest

    def _handle(
        self,
        registration: Registration,
        header: RequestHeader,
        frame: memoryview,
        position: int,
        outbox: Outbox,
    ) -> Coroutine[Any, Any, None] | ParkedAnswer | None:
        version = header.api_version
        context = self._context
        context.has_many_elements = False
        try:
            request = registration.decode(version, frame, position, QUICK_ELEMENTS)
        except TooManyElements:
            return self._answer_in_turns(registration, header, frame, position, outbox)
        except MalformedMessage as error:
            raise _malformed(registration, header, error) from None
        context.api_version = version
        context.client_id = header.client_id
        context.correlation_id = header.correlation_id
        try:
            response = registration.function(context, request)
            if type(response) is CoroutineType:
                return self._answer_later(registration, header, response, outbox)
            if isinstance(response, Parked):
                return _ParkedRequest(self, registration, header, response)
            if response is not None:
                self._add_response(registration, header, version, response, outbox)
        except Exception as error:  # noqa: BLE001
            raise _ending(registration, header, error) from None
        return None

    def add_parked(
        self,
        registration: Registration,
        header: RequestHeader,
        parked: Parked,
        time_is_up: bool,
        outbox: Outbox,
    ) -> bool:
        """Put the answer of a request that waits into the outbox, if it can be given."""
        try:
            response = parked.answer(time_is_up=time_is_up)
            if response is None:
                return False
            self._add_response(registration, header, header.api_version, response, outbox)
        except Exception as error:  # noqa: BLE001
            raise _ending(registration, header, error) from None
        return True

    async def _answer_later(
        self,
        registration: Registration,
        header: RequestHeader,
        waiting: Awaitable[Any],
        outbox: Outbox,
    ) -> None:
        """The handler has to wait."""
        try:
            response = await _after_flush(outbox, waiting)
            if response is None:
                return
            version = header.api_version
            if self._context.has_many_elements:  # as the handler has found
                await _CODING.run(self._add_response, registration, header, version, response, outbox)
            else:
                self._add_response(registration, header, version, response, outbox)
        except Exception as error:  # noqa: BLE001
            raise _ending(registration, header, error) from None

    async def _answer_in_turns(
        self,
        registration: Registration,
        header: RequestHeader,
        frame: memoryview,
        position: int,
        outbox: Outbox,
    ) -> None:
        """A request with so many elements that decoding it, and encoding its answer, is for a worker thread."""
        version = header.api_version
        context = self._context
        context.has_many_elements = True
        try:
            decoding = _CODING.run(registration.decode, version, frame, position)
            request = await _after_flush(outbox, decoding)
        except MalformedMessage as error:
            raise _malformed(registration, header, error) from None
        context.api_version = version
        context.client_id = header.client_id
        context.correlation_id = header.correlation_id
        try:
            response = registration.function(context, request)
            if isinstance(response, CoroutineType | Parked):
                response = await _after_flush(outbox, response)
            if response is not None:
                add = _CODING.run(self._add_response, registration, header, version, response, outbox)
                await _after_flush(outbox, add)
        except Exception as error:  # noqa: BLE001
            raise _ending(registration, header, error) from None

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


def _malformed(registration: Registration, header: RequestHeader, error: MalformedMessage) -> CloseConnection:
    name = registration.request_type.__name__
    return CloseConnection(f"malformed {name} v{header.api_version} client_id={header.client_id!r}: {error}")


def _ending(registration: Registration, header: RequestHeader, error: Exception) -> Exception:
    """What the connection ends with: the error if it says so itself, or a bug of ours, which is logged."""
    if isinstance(error, CloseConnection | PeerGone):
        return error
    named = (
        f"api={registration.api_key.name} version={header.api_version} client_id={header.client_id!r}"
        f" correlation_id={header.correlation_id}"
    )
    log.error("request failed %s", named, exc_info=error)
    return CloseConnection(f"internal error in {registration.api_key.name}")


async def _after_flush(outbox: Outbox, waiting: Awaitable[Any]) -> Any:
    """Send the answers that are ready, so that they do not wait for this one."""
    try:
        await outbox.flush()
    except BaseException as error:
        if isinstance(waiting, CoroutineType):
            waiting.close()
        if isinstance(error, OSError):
            raise PeerGone(str(error)) from error
        raise
    return await waiting
