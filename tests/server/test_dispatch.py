"""The boundary where errors are sorted: whatever a handler or an encoder does, only its connection ends."""

import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.server.context import RequestContext
from ottla.server.dispatch import CloseConnection, Dispatcher
from ottla.server.output import Outbox
from ottla.server.parked import ParkedAnswer
from ottla.server.registry import HandlerFunction, Registration
from ottla.wire.api_keys import ApiKey
from ottla.wire.headers import RequestHeader, encode_request_header
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.schema import encode

VERSION = 1
FRAME = encode_request_header(RequestHeader(ApiKey.METADATA, VERSION, 5, "me")) + encode(
    MetadataRequest(topics=[]), VERSION
)


def dispatcher(function: HandlerFunction) -> Dispatcher:
    """Serves Metadata, version 1, by a function of the test's own."""
    context = RequestContext(None, "PLAINTEXT", "127.0.0.1")  # type: ignore[arg-type]
    served = Registration(ApiKey.METADATA)
    served.request_type, served.function, served.is_loaded = MetadataRequest, function, True
    served.prepare(VERSION)
    return Dispatcher({ApiKey.METADATA: served}, context)


async def answered(rest: Coroutine[Any, Any, None] | ParkedAnswer | None) -> None:
    """Await what is left of a request that was not answered at once."""
    assert not isinstance(rest, ParkedAnswer)
    if rest is not None:
        await rest


@contextmanager
def outbox_and_peer() -> Iterator[tuple[Outbox, socket.socket]]:
    """An outbox, and the socket on which its answers arrive."""
    ours, peer = socket.socketpair()
    with ours, peer:
        ours.setblocking(False)
        yield Outbox(ours), peer


async def test_an_answer_is_framed() -> None:
    """Size, correlation id, body."""
    response = MetadataResponse(controller_id=3)
    with outbox_and_peer() as (outbox, peer):
        await answered(dispatcher(lambda context, request: response).answer(memoryview(FRAME), outbox))
        body = encode(response, VERSION)
        assert outbox.size_bytes == 8 + len(body)
        await outbox.flush()
        assert peer.recv(1000) == (4 + len(body)).to_bytes(4, "big") + b"\0\0\0\5" + body


@pytest.mark.parametrize(
    "function",
    [
        lambda context, request: 1 // 0,
        lambda context, request: MetadataResponse(controller_id="three"),
        lambda context, request: MetadataResponse(cluster_id="x", controller_id=2**40),
    ],
    ids=["handler", "answer of a wrong type", "answer of a wrong value"],
)
async def test_a_bug_closes_the_connection_and_leaves_no_half_answer(
    function: HandlerFunction, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception in a handler and one in the encoding of what it returned are told alike."""
    with outbox_and_peer() as (outbox, _):
        with pytest.raises(CloseConnection, match="internal error in METADATA"):
            await answered(dispatcher(function).answer(memoryview(FRAME), outbox))
        assert outbox.size_bytes == 0
    assert "request failed api=METADATA version=1 client_id='me' correlation_id=5" in caplog.text


async def test_code_that_is_not_there_yet_is_read_by_a_thread() -> None:
    """The request waits for it, and is answered as any other."""
    threads: list[threading.Thread] = []

    class Late(Registration):
        def load(self) -> None:
            threads.append(threading.current_thread())
            self.request_type, self.is_loaded = MetadataRequest, True
            self.function = lambda context, request: MetadataResponse()

    served = {ApiKey.METADATA: Late(ApiKey.METADATA)}
    made = Dispatcher(served, RequestContext(None, "PLAINTEXT", "127.0.0.1"))  # type: ignore[arg-type, dict-item]
    with outbox_and_peer() as (outbox, _):
        rest = made.answer(memoryview(FRAME), outbox)
        assert rest is not None
        assert outbox.size_bytes == 0
        await answered(rest)
        assert outbox.size_bytes > 0
        assert made.answer(memoryview(FRAME), outbox) is None
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()
