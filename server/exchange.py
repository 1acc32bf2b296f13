"""One request on its way from its bytes to those of its answer: decode, handler, encode.

What is large is decoded and encoded by a worker thread (see turns). An answer is known to be large only when it is
there: a small request may be about very many things.

The boundary where errors are sorted: what a peer got wrong closes that connection with one line
(`CloseConnection`); anything else that escapes a handler, or an answer that cannot be encoded, is a bug of ours,
logged with its traceback, and closes that connection too, so that the client retries instead of reading a made-up
answer.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from types import CoroutineType
from typing import Any

from ottla.server.context import RequestContext
from ottla.server.late_parts import prepare
from ottla.server.output import Outbox
from ottla.server.parked import Parked, ParkedAnswer
from ottla.server.registry import Registration
from ottla.server.turns import QUICK_ELEMENTS, code_in_thread
from ottla.wire.chunks import Chunk
from ottla.wire.errors import MalformedMessage, TooManyElements
from ottla.wire.headers import RequestHeader, encode_response_header

log = logging.getLogger("ottla.server")


class CloseConnection(Exception):
    """This connection cannot go on; the text is the one log line about it."""


class PeerGone(OSError):
    """The client left while answers were sent to it."""


class Exchange:
    """A request of one connection, and where its answer goes."""

    __slots__ = ("_context", "_header", "_outbox", "_registration")

    def __init__(
        self, context: RequestContext, registration: Registration, header: RequestHeader, outbox: Outbox
    ) -> None:
        self._context = context
        self._registration = registration
        self._header = header
        self._outbox = outbox

    def handle(self, body: memoryview) -> Coroutine[Any, Any, None] | ParkedAnswer | None:
        """Put the answer into the outbox, or return what is to be awaited for it."""
        try:
            request = self._registration.decode(self._header.api_version, body, QUICK_ELEMENTS)
        except TooManyElements:
            return self._handle_many(body)
        except MalformedMessage as error:
            raise self._malformed(error) from None
        self._tell_context(has_many_elements=False)
        try:
            response = self._registration.function(self._context, request)
            if type(response) is CoroutineType:
                return self._answer_later(response)
            if isinstance(response, Parked):
                return _ParkedExchange(self, response)
            if response is not None:
                if self._registration.is_large(response, QUICK_ELEMENTS):
                    return self._answer_much([response])
                self._add(response)
        except Exception as error:  # noqa: BLE001
            raise self._ending(error) from None
        return None

    async def prepare_and_handle(self, body: memoryview) -> None:
        """The first request of its kind, or of its version: its code is read, and its codecs compiled, by a worker
        thread, while others are served."""
        await self._after_flush(prepare(self._registration, self._header.api_version))
        rest = self.handle(body)
        if isinstance(rest, ParkedAnswer):
            await rest.wait(self._outbox)
        elif rest is not None:
            await rest

    def answer_parked(self, parked: Parked, time_is_up: bool) -> bool:
        """Put the answer of a request that waits into the outbox, if it can be given."""
        try:
            response = parked.answer(time_is_up=time_is_up)
            if response is None:
                return False
            self._add(response)
        except Exception as error:  # noqa: BLE001
            raise self._ending(error) from None
        return True

    async def _answer_later(self, waiting: Awaitable[Any]) -> None:
        """The handler has to wait."""
        try:
            response = await self._after_flush(waiting)
            if response is None:
                return
            if self._registration.is_large(response, QUICK_ELEMENTS):
                holder = [response]
                del response
                await code_in_thread(self._add_held, holder)
            else:
                self._add(response)
        except Exception as error:  # noqa: BLE001
            raise self._ending(error) from None

    async def _handle_many(self, body: memoryview) -> None:
        """A request with so many elements that decoding it is for a worker thread."""
        try:
            decoding = code_in_thread(self._registration.decode, self._header.api_version, body)
            request = await self._after_flush(decoding)
        except MalformedMessage as error:
            raise self._malformed(error) from None
        self._tell_context(has_many_elements=True)
        try:
            response = self._registration.function(self._context, request)
            if isinstance(response, CoroutineType | Parked):
                response = await self._after_flush(response)
        except Exception as error:  # noqa: BLE001
            raise self._ending(error) from None
        if response is not None:
            holder = [response]
            del response
            await self._answer_much(holder)

    async def _answer_much(self, holder: list[Any]) -> None:
        """An answer that a worker thread encodes and lets go of: to free very many objects takes its time, too."""
        try:
            await self._after_flush(code_in_thread(self._add_held, holder))
        except Exception as error:  # noqa: BLE001
            raise self._ending(error) from None

    def _add_held(self, holder: list[Any]) -> None:
        response = holder.pop()
        self._add(response)
        self._registration.release(response)

    def _tell_context(self, has_many_elements: bool) -> None:
        context, header = self._context, self._header
        context.has_many_elements = has_many_elements
        context.api_version = header.api_version
        context.client_id = header.client_id
        context.correlation_id = header.correlation_id

    def _add(self, response: Any) -> None:
        add_response(self._registration, self._header, self._header.api_version, response, self._outbox)

    def _malformed(self, error: MalformedMessage) -> CloseConnection:
        name, header = self._registration.request_type.__name__, self._header
        return CloseConnection(
            f"malformed {name} v{header.api_version} client_id={header.client_id!r}: {error}"
        )

    def _ending(self, error: Exception) -> Exception:
        """What the connection ends with: the error if it says so itself, or a bug of ours, which is logged."""
        if isinstance(error, CloseConnection | PeerGone):
            return error
        name, header = self._registration.api_key.name, self._header
        named = (
            f"api={name} version={header.api_version} client_id={header.client_id!r}"
            f" correlation_id={header.correlation_id}"
        )
        log.error("request failed %s", named, exc_info=error)
        return CloseConnection(f"internal error in {name}")

    async def _after_flush(self, waiting: Awaitable[Any]) -> Any:
        """Send the answers that are ready, so that they do not wait for this one."""
        try:
            await self._outbox.flush()
        except BaseException as error:
            if isinstance(waiting, CoroutineType):
                waiting.close()
            if isinstance(error, OSError):
                raise PeerGone(str(error)) from error
            raise
        return await waiting


class _ParkedExchange(ParkedAnswer):
    """A request whose handler waits."""

    __slots__ = ("_exchange", "_parked", "max_wait_seconds")

    def __init__(self, exchange: Exchange, parked: Parked) -> None:
        self._exchange = exchange
        self._parked = parked
        self.max_wait_seconds = parked.max_wait_seconds

    def watch(self, wake: Callable[[], None]) -> None:
        self._parked.watch(wake)

    def try_to_answer(self, outbox: Outbox, *, time_is_up: bool) -> bool:
        return self._exchange.answer_parked(self._parked, time_is_up)

    def close(self) -> None:
        self._parked.close()


def add_response(
    registration: Registration, header: RequestHeader, version: int, response: Any, outbox: Outbox
) -> None:
    """Put a response into the outbox, in a version."""
    chunks: list[Chunk] = [encode_response_header(registration.api_key, version, header.correlation_id)]
    registration.encode(version, response, chunks)
    outbox.add_frame(chunks)
