"""Answers that come when all clients of a pass have been served: nobody is forgotten, and each keeps its order."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

import pytest
import trio
import trio.testing

from ottla.server.connection import BASE_BUFFER_BYTES, Connection
from ottla.server.dispatch import CloseConnection
from ottla.server.memory_budget import MemoryBudget
from ottla.server.output import Outbox
from ottla.server.ready_clients import ReadyClients, ready_clients
from tests.server.echoing import MAX_FRAME_BYTES, Client, Waiting, framed


class Owing:
    """Echoes what begins with "owe" at the end of the pass, if several clients are served in it; all else at once."""

    def __init__(self, clients: ReadyClients) -> None:
        self._clients = clients
        self._owed: list[tuple[Outbox, bytes]] = []
        self.were_owed = 0
        self.on_settled: Callable[[], None] | None = None
        self.waiting: list[Waiting] = []

    def connection_closed(self) -> None:
        """Nothing is kept for a connection."""

    def answer(self, frame: memoryview, outbox: Outbox) -> Waiting | None:
        if frame[:3] == b"owe" and self._clients.is_crowded:
            if not self._owed:
                self._clients.call_at_end(self._settle)
            self._owed.append((outbox, bytes(frame)))
            outbox.settle = self._settle
            self.were_owed += 1
            return None
        if outbox.settle is not None:
            outbox.settle()
        if frame == b"bad":
            raise CloseConnection("bad")
        if frame[:4] == b"wait":
            self.waiting.append(Waiting(bytes(frame)))
            return self.waiting[-1]
        outbox.add_frame([bytes(frame)])
        return None

    def _settle(self) -> None:
        owed, self._owed = self._owed, []
        for outbox, frame in owed:
            outbox.settle = None
            if frame == b"owe fail":
                outbox.failure = CloseConnection("it could not be done")
            elif outbox.failure is None:
                outbox.add_frame([frame])
        if owed and self.on_settled is not None:
            self.on_settled()


@asynccontextmanager
async def connections(dispatcher: Owing, count: int) -> AsyncIterator[list[Any]]:
    """Clients that can send at the same moment."""
    found: list[Any] = []
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            arguments: Any = (dispatcher, MemoryBudget(1 << 20), MAX_FRAME_BYTES, 0.0, ready_clients())
            nursery.start_soon(Connection(ours, "test:1", *arguments).serve)
            found.append(Client(theirs))
            found[-1].send_now = theirs.send
        await trio.testing.wait_all_tasks_blocked(0.01)
        yield found
        for client in found:
            client.sock.close()
        nursery.cancel_scope.deadline = trio.current_time() + 5


def of_this_run() -> ReadyClients:
    clients = ready_clients()
    assert clients is not None
    return clients


async def test_each_client_gets_its_answers_in_order() -> None:
    """Whatever of them comes at once, and however many are owed."""
    dispatcher = Owing(of_this_run())
    sent = framed(b"owe 1", b"owe 2", b"now", b"owe 3")
    async with connections(dispatcher, 5) as clients:
        for _ in range(20):
            for client in clients:
                client.send_now(sent)
            for client in clients:
                assert await client.receive(len(sent)) == sent
    assert dispatcher.were_owed > 20


async def test_a_single_client_is_answered_at_once() -> None:
    """There is nobody to wait for."""
    dispatcher = Owing(of_this_run())
    async with connections(dispatcher, 1) as [client]:
        client.send_now(framed(b"owe 1"))
        assert await client.receive(9) == framed(b"owe 1")
    assert dispatcher.were_owed == 0


async def test_what_is_owed_is_sent_before_a_bad_request_closes_the_connection() -> None:
    """And the other clients go on."""
    dispatcher = Owing(of_this_run())
    async with connections(dispatcher, 3) as [first, second, third]:
        for client in (first, second, third):
            client.send_now(framed(b"owe 1", b"bad" if client is second else b"owe"))
        assert await first.receive(16) == framed(b"owe 1", b"owe")
        assert await second.receive(100) == framed(b"owe 1")
        assert await third.receive(16) == framed(b"owe 1", b"owe")
    assert dispatcher.were_owed > 3


async def test_a_client_that_leaves_with_its_request() -> None:
    """The request is carried out, and the others have their answers."""
    dispatcher = Owing(of_this_run())
    async with connections(dispatcher, 2) as [first, second]:
        first.send_now(framed(b"owe 1"))
        second.send_now(framed(b"owe 2"))
        first.sock.close()
        assert await second.receive(9) == framed(b"owe 2")


async def test_a_client_that_has_no_more_to_say_but_listens() -> None:
    """It has its answer, though the end came with its request."""
    dispatcher = Owing(of_this_run())
    async with connections(dispatcher, 2) as [first, second]:
        first.send_now(framed(b"owe 1"))
        first.sock.shutdown(socket.SHUT_WR)
        second.send_now(framed(b"owe 2"))
        assert await first.receive(9) == framed(b"owe 1")
        assert await second.receive(9) == framed(b"owe 2")
    assert dispatcher.were_owed == 2


async def test_a_request_that_waits_behind_what_is_owed() -> None:
    """In the same pass, and with more behind it: that has to wait, too."""
    dispatcher = Owing(of_this_run())
    owed = framed(b"owe" + bytes(BASE_BUFFER_BYTES - 4 - 3 - 6), b"owe")
    async with connections(dispatcher, 2) as [first, second]:
        first.send_now(owed + framed(b"wait60", b"wait61", b"now"))
        second.send_now(framed(b"owe 2"))
        assert await first.receive(len(owed)) == owed
        assert await second.receive(9) == framed(b"owe 2")
        assert dispatcher.were_owed >= 2
        for number, frame in enumerate((b"wait60", b"wait61")):
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert len(dispatcher.waiting) == number + 1
            _let_go_on(dispatcher.waiting[number])
            assert await first.receive(10) == framed(frame)
        assert await first.receive(7) == framed(b"now")


async def test_what_is_owed_and_cannot_be_given() -> None:
    """The connection ends behind the answers before it."""
    dispatcher = Owing(of_this_run())
    async with connections(dispatcher, 2) as [first, second]:
        first.send_now(framed(b"owe 1", b"owe fail", b"owe 3"))
        second.send_now(framed(b"owe 2"))
        assert await first.receive(100) == framed(b"owe 1")
        assert await second.receive(9) == framed(b"owe 2")


async def test_a_turn_that_ends_amid_what_is_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent when the connection has its next turn."""
    ready = of_this_run()
    monkeypatch.setattr(ready, "_share_turn", lambda _: setattr(ready, "turn_seconds", -1))
    dispatcher = Owing(ready)
    sent = framed(b"owe 1", b"owe 2", b"now", b"owe 3")
    async with connections(dispatcher, 3) as clients:
        for client in clients:
            client.send_now(sent)
        for client in clients:
            assert await client.receive(len(sent)) == sent


async def test_what_was_owed_is_sent_while_the_next_requests_are_answered() -> None:
    """A pass may take so long that the answer is not sent in it, and more may have come by the next one: the connection
    that is called to send what was owed is the one that is at work, and must not begin in the midst of that."""
    dispatcher = Owing(of_this_run())
    fills_buffer = [b"now" + bytes(BASE_BUFFER_BYTES // 16 - 7)] * 16
    behind = framed(*fills_buffer, b"wait60", *fills_buffer, b"wait61")
    async with connections(dispatcher, 4) as clients:

        def take_long() -> None:
            dispatcher.on_settled = None
            clients[1].send_now(behind)
            ends = perf_counter() + 0.002
            while perf_counter() < ends:
                pass

        dispatcher.on_settled = take_long
        for client in clients:
            client.send_now(framed(b"owe"))
        for client in clients:
            assert await client.receive(7) == framed(b"owe")
        assert await clients[1].receive(BASE_BUFFER_BYTES) == framed(*fills_buffer)
        for number, waiting in enumerate((b"wait60", b"wait61")):
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert len(dispatcher.waiting) == number + 1
            _let_go_on(dispatcher.waiting[number])
            assert await clients[1].receive(10) == framed(waiting)
            if number == 0:
                assert await clients[1].receive(BASE_BUFFER_BYTES) == framed(*fills_buffer)


def _let_go_on(waiting: Waiting) -> None:
    waiting.is_ready = True
    assert waiting.wake is not None
    waiting.wake()


async def test_the_end_of_a_pass() -> None:
    """It comes when all have been served, and one client alone is no crowd."""
    clients = of_this_run()
    seen: list[str] = []
    pairs = [socket.socketpair() for _ in range(3)]

    def on_ready_of(number: int) -> Callable[[int], None]:
        def on_ready(events: int) -> None:
            if pairs[number][0].recv(10):
                seen.append(f"{number} crowded" if clients.is_crowded else f"{number} alone")
                clients.call_at_end(lambda: seen.append(f"end {number} {clients.is_crowded}"))

        return on_ready

    for number, (ours, theirs) in enumerate(pairs):
        theirs.send(b"x")
        clients.add(ours, on_ready_of(number))
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert sorted(seen[:3]) == ["0 crowded", "1 crowded", "2 crowded"]
    assert sorted(seen[3:]) == ["end 0 False", "end 1 False", "end 2 False"]
    seen.clear()
    pairs[1][1].send(b"x")
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert seen == ["1 alone", "end 1 False"]
    for ours, theirs in pairs:
        clients.remove(ours)
        ours.close()
        theirs.close()


async def test_a_pass_that_took_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that is to be done at its end is done at once, the others soon, and in their order."""
    monkeypatch.setattr("ottla.server.ready_clients._TURN_SECONDS", -1)
    clients = of_this_run()
    seen: list[str] = []
    ours, theirs = socket.socketpair()

    def on_ready(events: int) -> None:
        if ours.recv(10):
            for number in range(3):
                clients.call_at_end(lambda number=number: seen.append(f"end {number}"))  # type: ignore[misc]
            clients.call_soon(lambda: seen.append("soon"))

    with ours, theirs:
        theirs.send(b"x")
        clients.add(ours, on_ready)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert seen == ["end 0", "end 1", "end 2", "soon"]
        clients.remove(ours)
