"""What a connection does with frames and answers."""

import itertools
import logging
import socket
import struct
from time import perf_counter
from typing import Any

import pytest
import trio
import trio.testing

from ottla.server.connection import BASE_BUFFER_BYTES, Connection
from ottla.server.dispatch import CloseConnection
from ottla.server.memory_budget import MemoryBudget
from ottla.server.output import Outbox
from ottla.server.ready_clients import ready_clients
from tests.server.echoing import (
    MAX_FRAME_BYTES,
    EchoDispatcher,
    connected,
    framed,
    way_of_waiting,
)

__all__ = ["way_of_waiting"]


async def test_pipelined_frames_are_answered_in_order() -> None:
    """Many frames in one send come back as many answers, in order."""
    frames = [str(number).encode() * 3 for number in range(500)]
    async with connected() as (client, _, _):
        await client.send(framed(*frames))
        assert await client.receive(len(framed(*frames))) == framed(*frames)


async def test_order_is_kept_when_some_answers_wait() -> None:
    """A slow answer is not overtaken by a quick one of the same connection."""

    async def slow_when_even(frame: bytes) -> bytes:
        if int(frame) % 2 == 0:
            await trio.lowlevel.checkpoint()
        return frame

    frames = [str(number).encode() for number in range(50)]
    async with connected(slow_when_even) as (client, _, _):
        await client.send(framed(*frames))
        assert await client.receive(len(framed(*frames))) == framed(*frames)


async def test_a_burst_takes_turns_with_other_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A buffer full of requests does not keep the loop until the last one is answered."""
    ticks = itertools.count()
    monkeypatch.setattr("ottla.server.connection.perf_counter", lambda: next(ticks) / 1000)
    handled = []

    async def note(frame: bytes) -> bytes:
        handled.append(frame)
        return frame

    async with connected(note) as (greedy, _, _), connected(note) as (other, _, _):
        await greedy.send(framed(*[b"burst"] * 100))
        await other.send(framed(b"one"))
        assert await other.receive(7) == framed(b"one")
        assert await greedy.receive(900) == framed(*[b"burst"] * 100)
    assert handled.index(b"one") < 50


async def test_what_is_there_at_first_and_after_a_request_that_waited_is_begun_from_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of many tasks that go on in one pass of Trio's, each would take a turn of its own for what its client sent."""
    begun_in_task = []

    class Watched(EchoDispatcher):
        def answer(self, frame: memoryview, outbox: Outbox) -> Any:
            try:
                trio.lowlevel.current_task()
                begun_in_task.append(True)
            except RuntimeError:
                begun_in_task.append(False)
            return super().answer(frame, outbox)

    async def wait(frame: bytes) -> bytes:
        await trio.lowlevel.checkpoint()
        return frame

    monkeypatch.setattr("tests.server.echoing.EchoDispatcher", Watched)
    async with connected(wait) as (client, connection, _):
        await client.send(framed(b"one", b"two", b"three"))
        assert await client.receive(23) == framed(b"one", b"two", b"three")
        await trio.testing.wait_all_tasks_blocked()
        assert not connection.busy
    assert begun_in_task == [connection._ready_clients is None] * 3


async def test_a_turn_that_ends_at_the_beginning_of_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not even the length of the next one is nothing to go on with: the connection is not busy and can stop."""
    ticks = itertools.count()
    monkeypatch.setattr("ottla.server.connection.perf_counter", lambda: next(ticks) / 1000)

    class NotAnswering:
        def connection_closed(self) -> None:
            """Nothing is kept for a connection."""

        def answer(self, frame: memoryview, outbox: Outbox) -> None:
            """As to a request with acks=0."""

    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    dispatcher: Any = NotAnswering()
    connection = Connection(
        ours, "test:1", dispatcher, MemoryBudget(1000), MAX_FRAME_BYTES, 0.0, ready_clients()
    )
    with theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.serve)
            theirs.send(framed(b"x") + b"\0\0")
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert not connection.busy
            connection.stop()
    assert connection.has_ended


async def test_a_peer_that_left_is_noticed_while_its_request_waits() -> None:
    """A request that waits keeps the connection from reading, and so from seeing the end of it."""

    async def wait(frame: bytes) -> bytes:
        await trio.sleep_forever()
        return frame

    async with connected(wait) as (client, connection, _):
        await client.send(framed(b"work"))
        await trio.testing.wait_all_tasks_blocked()
        assert not connection.peer_has_left()
        client.sock.close()
        assert connection.peer_has_left()
        connection.abort("left")


async def test_frames_arrive_byte_by_byte() -> None:
    """A frame may be torn anywhere, its length included."""
    async with connected() as (client, _, _):
        for byte in framed(b"hello", b"", b"world"):
            await client.send(bytes([byte]))
            await trio.testing.wait_all_tasks_blocked()
        assert await client.receive(22) == framed(b"hello", b"", b"world")


async def test_a_large_frame_gets_room_and_gives_it_back() -> None:
    """Larger than the buffer is allowed, accounted for, and released when the connection is quiet."""
    large = bytes(range(256)) * 2000
    async with connected() as (client, connection, budget):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, framed(large, b"after"))
            assert await client.receive(len(framed(large, b"after"))) == framed(large, b"after")
        assert budget.used_bytes == len(large) + 4 - BASE_BUFFER_BYTES
        await trio.testing.wait_all_tasks_blocked()
        connection.trim()
        connection.trim()
        assert budget.used_bytes == 0
        await client.send(framed(b"again"))
        assert await client.receive(9) == framed(b"again")
    assert budget.used_bytes == 0


async def test_a_large_frame_waits_for_room_while_others_are_served() -> None:
    """Back-pressure holds the greedy connection only."""
    budget = MemoryBudget(4 * BASE_BUFFER_BYTES)
    budget.reserve_nowait(3 * BASE_BUFFER_BYTES)
    large = bytes(3 * BASE_BUFFER_BYTES)
    async with (
        connected(budget=budget) as (greedy, _, _),
        connected(budget=budget) as (other, _, _),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(greedy.send, framed(large))
        await trio.testing.wait_all_tasks_blocked()
        assert budget.has_waiters
        await other.send(framed(b"hi"))
        assert await other.receive(6) == framed(b"hi")
        budget.release(3 * BASE_BUFFER_BYTES)
        assert await greedy.receive(len(large) + 4) == framed(large)


async def test_room_is_made_for_bytes_sent_not_for_bytes_announced() -> None:
    """A frame that was only announced takes nothing of the budget until its bytes fill the buffer."""
    async with connected() as (client, _, budget):
        await client.send(struct.pack(">i", MAX_FRAME_BYTES) + bytes(1000))
        await trio.testing.wait_all_tasks_blocked()
        assert budget.used_bytes == 0
        await client.send(bytes(BASE_BUFFER_BYTES))
        await trio.testing.wait_all_tasks_blocked()
        assert budget.used_bytes == MAX_FRAME_BYTES + 4 - BASE_BUFFER_BYTES
        await client.send(bytes(MAX_FRAME_BYTES - BASE_BUFFER_BYTES - 1000))
        assert await client.receive(4 + MAX_FRAME_BYTES) == framed(bytes(MAX_FRAME_BYTES))


@pytest.mark.parametrize(
    ("first_bytes", "named"),
    [
        (b"\xff\xff\xff\xff", "negative frame length -1"),
        ((MAX_FRAME_BYTES + 1).to_bytes(4, "big"), "socket.request.max.bytes"),
        (b"\x16\x03\x01\x02\x00\x01", "TLS"),
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"SSH-2.0-OpenSSH", "SSH"),
    ],
)
async def test_what_is_no_frame_closes_the_connection_with_one_line(
    caplog: pytest.LogCaptureFixture, first_bytes: bytes, named: str
) -> None:
    """The log line names what was sent."""
    caplog.set_level(logging.WARNING, "ottla.server")
    async with connected() as (client, _, _):
        await client.send(first_bytes)
        assert await client.receive(1) == b""
    assert [named in record.getMessage() for record in caplog.records] == [True]


async def test_answers_before_a_bad_request_are_sent_before_the_connection_closes() -> None:
    """What was good of a pipelined burst is answered."""

    async def refuse_x(frame: bytes) -> bytes:
        if frame == b"x":
            raise CloseConnection("refused")
        return frame

    async with connected(refuse_x) as (client, _, _):
        await client.send(framed(b"good", b"x", b"never"))
        assert await client.receive(100) == framed(b"good")


async def test_a_bug_ends_its_own_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    """An error that nobody foresaw is logged with its traceback and goes no further than its connection."""

    async def fail(frame: bytes) -> bytes:
        raise ZeroDivisionError

    async with connected() as (other, _, _):
        async with connected(fail) as (client, _, _):
            await client.send(framed(b"x"))
            assert await client.receive(1) == b""
        await other.send(framed(b"hi"))
        assert await other.receive(6) == framed(b"hi")
    assert "ZeroDivisionError" in caplog.text


async def test_stop_closes_an_idle_connection_at_once_and_a_busy_one_after_its_answer() -> None:
    """Graceful stop lets the request at hand be answered."""
    release = trio.Event()

    async def wait(frame: bytes) -> bytes:
        await release.wait()
        return frame

    async with connected() as (idle, idle_connection, _), connected(wait) as (busy, busy_connection, _):
        await busy.send(framed(b"work"))
        await trio.testing.wait_all_tasks_blocked()
        idle_connection.stop()
        busy_connection.stop()
        assert await idle.receive(1) == b""
        release.set()
        assert await busy.receive(100) == framed(b"work")


async def test_no_answer_for_requests_that_have_none() -> None:
    """acks=0 leaves nothing on the wire."""

    async def only_second(frame: bytes) -> bytes | None:
        return frame if frame == b"b" else None

    async with connected(only_second) as (client, _, _):
        await client.send(framed(b"a", b"b"))
        assert await client.receive(5) == framed(b"b")


async def test_large_answers_behind_each_other_arrive_whole_and_in_order() -> None:
    """More than the socket takes, and more than one turn; the client reads at its own pace."""
    frames = [bytes([number]) * (MAX_FRAME_BYTES - number) for number in range(1, 12)]
    async with connected() as (client, connection, budget):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, framed(*frames, b"end"))
            expected = framed(*frames, b"end")
            for begin in range(0, len(expected), 700_000):
                piece = expected[begin : begin + 700_000]
                assert await client.receive(len(piece)) == piece
        await trio.testing.wait_all_tasks_blocked()
        assert not connection.busy
        await client.send(framed(b"more"))
        assert await client.receive(8) == framed(b"more")
    assert budget.used_bytes == 0


async def test_a_request_and_the_end_in_one() -> None:
    """Who says goodbye together with his last request gets his answer, and the connection ends."""
    async with connected() as (client, _, _):
        await client.send(framed(b"last"))
        client.sock.shutdown(socket.SHUT_WR)
        with trio.fail_after(60):
            assert await client.receive(100) == framed(b"last")


async def test_a_client_that_leaves_amid_its_answer() -> None:
    """The connection ends, though nobody waits for bytes of it."""
    async with connected() as (client, connection, budget):
        await client.send(framed(bytes(MAX_FRAME_BYTES)))
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert connection.busy
        client.sock.close()
    assert budget.used_bytes == 0


async def test_a_connection_that_is_stopped_amid_its_answer() -> None:
    """Closes when the client has taken it."""
    async with connected() as (client, connection, _):
        frame = bytes(MAX_FRAME_BYTES)
        await client.send(framed(frame))
        await trio.testing.wait_all_tasks_blocked(0.01)
        connection.stop()
        assert await client.receive(len(frame) + 10) == framed(frame)


async def test_a_large_answer_counts_until_the_client_has_taken_it() -> None:
    """Small ones do not; while others wait for memory, a client that takes none of its answer can be told."""
    large = bytes(900_000)

    async def answer(frame: bytes) -> bytes:
        return large if frame == b"large" else frame

    async with connected(answer) as (client, connection, budget):
        await client.send(framed(b"small"))
        assert await client.receive(9) == framed(b"small")
        assert not connection.holds_memory_since(perf_counter() + 1)
        await client.send(framed(b"large"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(large) // 2 < budget.used_bytes <= len(large)  # some of it is in the socket
        assert connection.holds_memory_since(perf_counter() + 1)
        assert not connection.holds_memory_since(perf_counter() - 1)
        assert await client.receive(len(large) + 4) == framed(large)
        await trio.testing.wait_all_tasks_blocked()
        assert budget.used_bytes == 0
        assert not connection.holds_memory_since(perf_counter() + 1)
    assert budget.used_bytes == 0
