"""Sending chunks: bytes and slices of files, small and large, arrive as one stream."""

import socket
from pathlib import Path

import pytest
import trio

from ottla.server.output import send_chunks
from ottla.wire.chunks import Chunk, FileSlice

CONTENT = bytes(range(256)) * 1024


async def received_from(chunks: list[Chunk]) -> bytes:
    """What arrives at the other end of a socket."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    received = b""

    async def send() -> None:
        with ours:
            await send_chunks(ours, chunks)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        with trio.socket.from_stdlib_socket(theirs) as end:
            while data := await end.recv(65536):
                received += data
    return received


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
