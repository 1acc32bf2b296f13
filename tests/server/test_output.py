"""Sending chunks: bytes and slices of files, small and large, arrive as one stream."""

import os
import select
import socket
import threading
from pathlib import Path
from time import perf_counter

import pytest
import trio
import trio.testing

from ottla.log_store import page_cache
from ottla.server import cold_reads, output
from ottla.server.memory_budget import MemoryBudget
from ottla.server.output import Outbox, Progress
from ottla.wire.chunks import Chunk, FileSlice

CONTENT = bytes(range(256)) * 1024


def outbox_with(sock: socket.socket, chunks: list[Chunk], budget: MemoryBudget | None = None) -> Outbox:
    """One answer, ready to be sent."""
    outbox = Outbox(sock, budget)
    outbox.add_frame(chunks)
    return outbox


async def received_from(chunks: list[Chunk]) -> bytes:
    """What arrives at the other end of a socket."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    received = b""

    async def send() -> None:
        with ours:
            await outbox_with(ours, chunks).flush()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        with trio.socket.from_stdlib_socket(theirs) as end:
            while data := await end.recv(65536):
                received += data
    assert int.from_bytes(received[:4], "big") == sum(map(len, chunks))
    return received[4:]


async def test_bytes_and_slices_in_order(tmp_path: Path) -> None:
    """Whatever the sizes, and more than the socket's buffers hold."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT)
    with path.open("rb") as file:
        spans = [(10, 100), (0, len(CONTENT)), (5, 0), (1000, 32 * 1024), (7, 32 * 1024 - 1), (0, 200_000)]
        chunks: list[Chunk] = []
        expected = b""
        for number, (position, length) in enumerate(spans):
            header = b"<%d>" % number * (1 + 20_000 * (number % 2))
            chunks += [header, FileSlice(file, position, length)]
            expected += header + CONTENT[position : position + length]
        assert await received_from([*chunks, b"end"]) == expected + b"end"


@pytest.mark.parametrize("length", [100, 100_000])
async def test_a_file_that_became_shorter_closes_the_connection(tmp_path: Path, length: int) -> None:
    """The length is promised already, so nothing else can be sent in its place."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT[: length - 1])
    with path.open("rb") as file, pytest.RaisesGroup(OSError, flatten_subgroups=True):
        await received_from([b"header", FileSlice(file, 0, length)])


async def test_what_is_not_in_memory_is_read_by_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small slices and large ones; the loop itself reads nothing that may have to come from the disk."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT * 10)
    threads: list[threading.Thread] = []
    pread, sendfile = os.pread, os.sendfile

    def noted_pread(*arguments: int) -> bytes:
        threads.append(threading.current_thread())
        return pread(*arguments)

    def noted_sendfile(*arguments: int) -> int:
        threads.append(threading.current_thread())
        return sendfile(*arguments)

    monkeypatch.setattr(os, "pread", noted_pread)
    monkeypatch.setattr(os, "sendfile", noted_sendfile)
    with path.open("rb") as file:
        for length in (1000, len(CONTENT) * 9):
            chunk = FileSlice(file, 5, length)
            for cold in (True, False):
                with monkeypatch.context() as patched:
                    if cold:
                        for way in ("probe", "is_in_memory"):
                            patched.setattr(output, way, lambda *stretch: False)
                        patched.setattr(output, "read_cached", lambda chunk: None)
                    threads.clear()
                    received = await received_from([b"<", chunk, b">"])
                assert received == b"<" + (CONTENT * 10)[5 : 5 + length] + b">"
                here = [thread is threading.current_thread() for thread in threads]
                assert not any(here) if cold else all(here)
                assert bool(here) or length == 1000


def test_what_is_in_memory(tmp_path: Path) -> None:
    """A file that was just written is, wholly; one that the system was asked to forget is not."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT * 16)
    size = len(CONTENT) * 16
    with path.open("rb") as file:
        assert page_cache.probe(file.fileno(), 3, size - 3)
        assert cold_reads.read_cached(FileSlice(file, 3, 5000)) == CONTENT[3:5003]
        assert cold_reads.read_cached(FileSlice(file, size - 10, 11)) is None
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if page_cache.probe(file.fileno(), size // 2, size // 2):
            pytest.skip("the system keeps it in memory, or does not tell")
        os.pread(file.fileno(), size, 0)
        assert page_cache.probe(file.fileno(), 0, size)


async def test_systems_without_such_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is taken to be in memory, and arrives."""
    monkeypatch.setattr(page_cache, "NOWAIT", 0)
    path = tmp_path / "log"
    path.write_bytes(CONTENT)
    with path.open("rb") as file:
        for length in (1000, 100_000):
            assert await received_from([FileSlice(file, 0, length)]) == CONTENT[:length]


async def test_small_slices_are_read_when_their_turn_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that does not read has only some of its answer in memory, however long it is."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT)
    read: list[int] = []
    read_cached = cold_reads.read_cached

    def noted(chunk: FileSlice) -> bytearray | None:
        read.append(len(chunk))
        return read_cached(chunk)

    monkeypatch.setattr(output, "read_cached", noted)
    ours, theirs = socket.socketpair()
    with ours, theirs, path.open("rb") as file:
        ours.setblocking(False)
        with trio.move_on_after(60) as scope:
            async with trio.open_nursery() as nursery:
                outbox = outbox_with(ours, [FileSlice(file, 0, 30_000) for _ in range(1000)])
                nursery.start_soon(outbox.flush)
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        assert not scope.cancelled_caught
    assert 0 < sum(read) < 5_000_000


async def test_little_is_sent_at_once(tmp_path: Path) -> None:
    """Bytes and a small slice leave in one go when the socket takes them."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT)
    ours, theirs = socket.socketpair()
    with ours, theirs, path.open("rb") as file:
        ours.setblocking(False)
        outbox = outbox_with(ours, [b"header", FileSlice(file, 5, 300)])
        assert outbox.send_some() is Progress.DONE
        assert outbox.size_bytes == 0
        assert theirs.recv(4096) == (306).to_bytes(4, "big") + b"header" + CONTENT[5:305]


async def test_what_the_socket_does_not_take_at_once_follows() -> None:
    """A full socket takes a part or nothing; `flush` sends the rest, in order and once."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    ours.setblocking(False)
    outbox = Outbox(ours)
    frames = [bytes([number]) * 9_000 for number in range(8)]
    received = b""

    async def send() -> None:
        with ours:
            for frame in frames:
                outbox.add_frame([frame])
                if outbox.send_some() is not Progress.DONE:
                    await outbox.flush()
                assert outbox.size_bytes == 0

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        with trio.socket.from_stdlib_socket(theirs) as end:
            while data := await end.recv(1000):
                received += data
    assert received == b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def test_sending_goes_on_where_the_socket_was_full(tmp_path: Path) -> None:
    """Without awaiting anything: what is sent each time is what comes next, of bytes, small slices and large ones."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT * 10)
    ours, theirs = socket.socketpair()
    received = b""
    with ours, theirs, path.open("rb") as file:
        ours.setblocking(False)
        chunks: list[Chunk] = [b"a" * 100_000, FileSlice(file, 7, 900_000), b"b", FileSlice(file, 5, 1000)]
        chunks += [b"c" * 70_000, FileSlice(file, 0, 1_000_000)]
        outbox = outbox_with(ours, chunks)
        seen = set()
        while (progress := outbox.send_some()) is not Progress.DONE:
            seen.add(progress)
            received += theirs.recv(50_000)
        assert seen == {Progress.FULL}
        assert outbox.size_bytes == 0
        ours.shutdown(socket.SHUT_WR)
        while data := theirs.recv(1 << 20):
            received += data
    content = CONTENT * 10
    expected = (
        b"a" * 100_000 + content[7:900_007] + b"b" + content[5:1005] + b"c" * 70_000 + content[:1_000_000]
    )
    assert received == len(expected).to_bytes(4, "big") + expected


def test_others_have_their_turn(tmp_path: Path) -> None:
    """However much a quick reader takes, one call sends only so much of it."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT * 10)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as theirs,
        server.accept()[0] as ours,
        path.open("rb") as file,
    ):
        ours.setblocking(False)
        slices: list[Chunk] = [FileSlice(file, 0, len(CONTENT) * 10) for _ in range(8)]
        size = sum(map(len, slices)) + 4
        outbox = outbox_with(ours, slices)
        reader = threading.Thread(target=_read_all, args=(theirs, size))
        reader.start()
        while (progress := outbox.send_some()) is not Progress.DONE:
            assert progress in (Progress.FULL, Progress.TURN)
            assert size - outbox.size_bytes <= output._TURN_BYTES + len(CONTENT)
            size = outbox.size_bytes
            if progress is Progress.FULL:
                select.select([], [ours], [])
        reader.join()


def _read_all(sock: socket.socket, size: int) -> None:
    while size:
        size -= len(sock.recv(1 << 20))


def test_what_is_sent_is_let_go_of(tmp_path: Path) -> None:
    """Of a long answer to a client that reads slowly only some is in memory at any time."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT)
    ours, theirs = socket.socketpair()
    with ours, theirs, path.open("rb") as file:
        ours.setblocking(False)
        outbox = outbox_with(ours, [FileSlice(file, 0, 30_000) for _ in range(300)])
        most = 0
        while outbox.send_some() is not Progress.DONE:
            theirs.recv(100_000)
            held = [chunk for chunk in outbox._chunks if not isinstance(chunk, FileSlice)]
            most = max(most, sum(map(len, held)))
        assert 0 < most < 1_000_000


async def test_cold_answers_that_are_not_taken_count_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is a thread that finds the socket full."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT * 10)
    monkeypatch.setattr(output, "probe", lambda *stretch: False)
    budget = MemoryBudget(1000)
    ours, theirs = socket.socketpair()
    with ours, theirs, path.open("rb") as file:
        ours.setblocking(False)
        outbox = outbox_with(ours, [FileSlice(file, 0, len(CONTENT) * 10), b"x" * 3_000_000], budget)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outbox.flush)
            with trio.fail_after(60):
                while not budget.used_bytes:
                    await trio.sleep(0.001)
            assert budget.used_bytes == 3_000_000
            nursery.cancel_scope.cancel()
        outbox.close()
    assert budget.used_bytes == 0


def test_the_last_bytes_of_a_large_answer_end_it() -> None:
    """However little is left, the budget gets everything back."""
    budget = MemoryBudget(1000)

    async def send() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            outbox = Outbox(ours, budget)
            outbox.add_bytes(bytes(500_000))
            while outbox.send_some() is not Progress.DONE:
                assert budget.used_bytes
                theirs.recv(7_000)
            assert budget.used_bytes == 0
            assert outbox.held_since > perf_counter()

    trio.run(send)


async def test_large_answers_that_are_not_taken_count_in_the_budget(tmp_path: Path) -> None:
    """From when the socket is full until all is sent, or given up; slices of files are in nobody's memory."""
    path = tmp_path / "log"
    path.write_bytes(CONTENT)
    budget = MemoryBudget(1000)
    with path.open("rb") as file:
        for is_taken in (True, False):
            ours, theirs = socket.socketpair()
            with ours, theirs:
                ours.setblocking(False)
                outbox = outbox_with(ours, [FileSlice(file, 0, 200_000), b"x" * 3_000_000], budget)
                assert outbox.send_some() is Progress.FULL
                assert 2_000_000 < budget.used_bytes <= 3_000_000
                assert outbox.held_since <= perf_counter()
                if is_taken:
                    while outbox.send_some() is not Progress.DONE:
                        theirs.recv(1 << 20)
                else:
                    outbox.close()
                assert budget.used_bytes == 0
                assert outbox.held_since > perf_counter()
