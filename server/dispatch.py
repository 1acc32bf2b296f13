"""From a frame to the chunks of its answer: the header, whether it is served in that version, and who answers it."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping
from typing import Any

from ottla.server.context import RequestContext
from ottla.server.exchange import CloseConnection, Exchange, add_response
from ottla.server.output import Outbox
from ottla.server.parked import ParkedAnswer
from ottla.server.quick_answers import Preparation, QuickAnswer
from ottla.server.registry import Registration, Registry
from ottla.server.turns import Turns
from ottla.wire.api_keys import ApiKey
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.wire.headers import RequestHeader, decode_request_header
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

__all__ = ["CloseConnection", "Dispatcher"]

log = logging.getLogger("ottla.server")


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
                if answer is True:
                    return None
                if isinstance(answer, ParkedAnswer):
                    return answer
                if answer is not False:
                    return self._answer_after(answer, frame, outbox)
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
                _refuse_api_versions(registration, header, outbox)
                return None
            raise CloseConnection(f"{registration.api_key.name} version {version} is not supported")
        exchange = Exchange(self._context, registration, header, outbox)
        body = frame[position:]
        if version in registration.ready_versions:
            return exchange.handle(body)
        return exchange.prepare_and_handle(body)

    async def _answer_after(self, prepare: Preparation, frame: memoryview, outbox: Outbox) -> None:
        """Do what has to be done before, then ask again."""
        await outbox.flush()
        await prepare()
        async with Turns():  # many may have waited for the same
            rest = self.answer(frame, outbox)
        if isinstance(rest, ParkedAnswer):
            await rest.wait(outbox)
        elif rest is not None:
            await rest


def _refuse_api_versions(registration: Registration, header: RequestHeader, outbox: Outbox) -> None:
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
    add_response(registration, header, 0, response, outbox)
