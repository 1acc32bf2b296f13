"""Send a list of chunks on a non-blocking socket: bytes are gathered, file slices leave by sendfile.

A slice of some kilobytes is read and gathered like bytes: sendfile costs more than the copy, and would cut the
answers of a pass into as many sends.

The socket is tried first; trio's scheduler is entered only when the kernel's buffer is full.
"""

import os
import socket
from collections.abc import Sequence

import trio

from ottla.wire.chunks import Chunk, FileSlice

_COPY_BELOW_BYTES = 32 * 1024
_JOIN_LIMIT_BYTES = 64 * 1024
_SENDFILE_STEP_BYTES = 2 * 1024 * 1024


class Outbox:
    """The answers of one connection that are ready and leave together."""

    __slots__ = ("_chunks", "_sock", "size_bytes")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._chunks: list[Chunk] = []
        self.size_bytes = 0

    def add_frame(self, chunks: list[Chunk]) -> None:
        """Add one answer, its length in front."""
        size = sum(map(len, chunks))
        self._chunks.append(size.to_bytes(4, "big"))
        self._chunks += chunks
        self.size_bytes += 4 + size

    async def flush(self) -> None:
        """Send everything. Raises OSError when the peer is gone."""
        if self._chunks:
            chunks, self._chunks = self._chunks, []
            self.size_bytes = 0
            await send_chunks(self._sock, chunks)


async def send_chunks(sock: socket.socket, chunks: list[Chunk]) -> None:
    """Send everything, in order; small slices in the list are replaced by their bytes. Raises OSError when the
    peer is gone."""
    last = len(chunks) - 1
    start = 0
    for index, chunk in enumerate(chunks):
        if isinstance(chunk, FileSlice):
            if len(chunk) < _COPY_BELOW_BYTES:
                chunks[index] = chunk.read()
                continue
            if index > start:
                await _send_bytes(sock, chunks[start:index], socket.MSG_MORE)
            await _send_file(sock, chunk)
            start = index + 1
    if start <= last:
        await _send_bytes(sock, chunks[start:], 0)


async def _send_bytes(sock: socket.socket, parts: Sequence[Chunk], flags: int) -> None:
    small: list[Chunk] = []
    size = 0
    for part in parts:
        if len(part) > _JOIN_LIMIT_BYTES:
            if small:
                await _send_all(sock, b"".join(small), socket.MSG_MORE)  # type: ignore[arg-type]
                small, size = [], 0
            await _send_all(sock, part, socket.MSG_MORE if part is not parts[-1] else flags)
        else:
            small.append(part)
            size += len(part)
    if size:
        await _send_all(sock, small[0] if len(small) == 1 else b"".join(small), flags)  # type: ignore[arg-type]


async def _send_all(sock: socket.socket, data: Chunk, flags: int) -> None:
    view = memoryview(data)  # type: ignore[arg-type]
    while True:
        try:
            sent = sock.send(view, flags)
        except BlockingIOError:
            await trio.lowlevel.wait_writable(sock)
            continue
        if sent == len(view):
            return
        view = view[sent:]


async def _send_file(sock: socket.socket, chunk: FileSlice) -> None:
    out_fd = sock.fileno()
    in_fd = chunk.fileno()
    position = chunk.position
    end = position + chunk.length
    while position < end:
        try:
            sent = os.sendfile(out_fd, in_fd, position, min(end - position, _SENDFILE_STEP_BYTES))
        except BlockingIOError:
            await trio.lowlevel.wait_writable(sock)
            continue
        if sent == 0:
            # The promised length is already on the wire: nothing but closing keeps the client from misreading.
            raise OSError(f"log file ended {end - position} bytes before the slice that was promised")
        position += sent
        if sent == _SENDFILE_STEP_BYTES:
            # A reader as quick as the disk would keep the loop here for the whole slice.
            await trio.lowlevel.checkpoint()
