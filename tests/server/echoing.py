"""Connections on a socket pair, with a dispatcher that echoes, for the tests of what a connection does.

A test module that imports `way_of_waiting` has each of its tests run in both ways in which a connection waits.
"""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from ottla.server.connection import Connection
from ottla.server.memory_budget import MemoryBudget
from ottla.server.output import Outbox
from ottla.server.parked import ParkedAnswer
from ottla.server.ready_clients import ready_clients

MAX_FRAME_BYTES = 1_000_000
Answer = Callable[[bytes], Awaitable[bytes | None]]


class Waiting(ParkedAnswer):
    """Echoes when it is told to, or "late" when the time is up."""

    def __init__(self, frame: bytes) -> None:
        self.max_wait_seconds = float(frame[4:] or b"60") if frame != b"waitfail" else 60
        self._frame = frame
        self.wake: Callable[[], None] | None = None
        self.is_ready = False

    def watch(self, wake: Callable[[], None]) -> None:
        self.wake = wake

    def close(self) -> None:
        self.wake = None

    def try_to_answer(self, outbox: Outbox, *, time_is_up: bool) -> bool:
        if self._frame == b"waitfail":
            raise ZeroDivisionError
        if self.is_ready or time_is_up:
            outbox.add_frame([self._frame if self.is_ready else b"late"])
        return self.is_ready or time_is_up


class EchoDispatcher:
    """Answers a frame with what a function makes of it; one that begins with "wait" waits without a task."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.waiting: list[Waiting] = []

    def connection_closed(self) -> None:
        """Nothing is kept for a connection."""

    def answer(self, frame: memoryview, outbox: Outbox) -> Coroutine[Any, Any, None] | ParkedAnswer | None:
        """At once if the function does not wait."""
        if frame[:4] == b"wait":
            self.waiting.append(Waiting(bytes(frame)))
            return self.waiting[-1]
        if self._answer is echo:
            outbox.add_frame([bytes(frame)])
            return None
        return self._answer_later(frame, outbox)

    async def _answer_later(self, frame: memoryview, outbox: Outbox) -> None:
        answer = await self._answer(bytes(frame))
        if answer is not None:
            outbox.add_frame([answer])


class _WayOfWaiting:
    """How the connections of a test wait for bytes: all of this is the same either way."""

    among_clients = True


_way = _WayOfWaiting()


@pytest.fixture(autouse=True, params=["among the ready clients", "by trio itself"])
def way_of_waiting(request: pytest.FixtureRequest) -> None:
    """Every test is run with both."""
    _way.among_clients = request.param == "among the ready clients"


async def echo(frame: bytes) -> bytes:
    return frame


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


class Client:
    """The other end, on trio."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = trio.socket.from_stdlib_socket(sock)

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[await self.sock.send(view) :]

    async def receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            data = await self.sock.recv(size - len(received))
            if not data:
                break
            received += data
        return received


@asynccontextmanager
async def connected(
    answer: Answer = echo, budget: MemoryBudget | None = None
) -> AsyncIterator[tuple[Client, Connection, MemoryBudget]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    budget = budget or MemoryBudget(10_000_000)
    connection = Connection(
        ours,
        "test:1",
        EchoDispatcher(answer),
        budget,
        MAX_FRAME_BYTES,
        0.0,
        ready_clients() if _way.among_clients else None,
    )
    client = Client(theirs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.serve)
        yield client, connection, budget
        client.sock.close()
        nursery.cancel_scope.deadline = trio.current_time() + 5
