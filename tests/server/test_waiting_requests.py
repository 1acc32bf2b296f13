"""Requests that wait without the connection's task."""

import pytest
import trio
import trio.testing

from ottla.server.connection import Connection
from ottla.server.output import Outbox, Progress
from tests.server.echoing import (
    Waiting,
    connected,
    framed,
    way_of_waiting,
)

__all__ = ["way_of_waiting"]


def waiting_of(connection: Connection) -> list[Waiting]:
    """The requests that have waited on the connection."""
    return connection._dispatcher.waiting  # type: ignore[attr-defined, no-any-return]


async def test_a_request_that_waits_is_answered_when_there_is_something() -> None:
    """And what came behind it after that, in order; being told in vain changes nothing."""
    async with connected() as (client, connection, _):
        await client.send(framed(b"before", b"wait", b"behind"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert await client.receive(10) == framed(b"before")
        (waiting,) = waiting_of(connection)
        assert connection.handling
        assert waiting.wake is not None
        waiting.wake()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert waiting.wake is not None
        await client.send(framed(b"later"))
        waiting.is_ready = True
        waiting.wake()
        waiting.wake()
        assert await client.receive(27) == framed(b"wait", b"behind", b"later")
        assert waiting.wake is None
        assert not connection.handling


# By trio's own means it is trio who decides whose task goes first.
@pytest.mark.parametrize("way_of_waiting", ["among the ready clients"], indirect=True)
async def test_who_waits_is_answered_before_who_ended_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is at its consumer before its producer is told that it has arrived."""
    sent: list[Outbox] = []
    send_some = Outbox.send_some

    def noted(outbox: Outbox) -> Progress:
        sent.append(outbox)
        return send_some(outbox)

    async with connected() as (waiter, waiting_connection, _), connected() as (client, connection, _):
        await waiter.send(framed(b"wait"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        (waiting,) = waiting_of(waiting_connection)

        def answer(frame: memoryview, outbox: Outbox) -> None:
            waiting.is_ready = True
            assert waiting.wake is not None
            waiting.wake()
            outbox.add_frame([bytes(frame)])

        monkeypatch.setattr(connection._dispatcher, "answer", answer)
        monkeypatch.setattr(Outbox, "send_some", noted)
        await client.send(framed(b"news"))
        assert await client.receive(8) == framed(b"news")
        assert await waiter.receive(8) == framed(b"wait")
        assert sent == [waiting_connection._outbox, connection._outbox]


async def test_a_request_that_waits_is_answered_when_its_time_is_up() -> None:
    """Several times in a row on one connection."""
    async with connected() as (client, connection, _):
        for _ in range(3):
            await client.send(framed(b"wait0.01"))
            assert await client.receive(8) == framed(b"late")
        assert [waiting.wake for waiting in waiting_of(connection)] == [None] * 3


async def test_a_connection_can_end_while_its_request_waits() -> None:
    """It waits no more, whoever has ended it."""
    async with connected() as (client, connection, _):
        await client.send(framed(b"wait"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert not connection.peer_has_left()
        client.sock.close()
        assert connection.peer_has_left()
        connection.abort("left")
        await trio.testing.wait_all_tasks_blocked(0.01)
        (waiting,) = waiting_of(connection)
        assert waiting.wake is None


async def test_a_connection_that_stops_answers_what_waits_first() -> None:
    """Graceful stop lets the request at hand be answered."""
    async with connected() as (client, connection, _):
        await client.send(framed(b"wait", b"never"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        connection.stop()
        (waiting,) = waiting_of(connection)
        waiting.is_ready = True
        assert waiting.wake is not None
        waiting.wake()
        assert await client.receive(100) == framed(b"wait")


async def test_a_bug_in_what_waits_ends_its_own_connection(caplog: pytest.LogCaptureFixture) -> None:
    """As any other bug in a handler."""
    async with connected() as (client, connection, _):
        await client.send(framed(b"waitfail"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        for waiting in waiting_of(connection):
            if waiting.wake is not None:
                waiting.wake()
        assert await client.receive(1) == b""
    assert "ZeroDivisionError" in caplog.text
