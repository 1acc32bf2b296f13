"""Send a list of chunks on a non-blocking socket: bytes are gathered, file slices leave by sendfile.

A slice of some kilobytes is read and gathered like bytes: sendfile costs more than the copy, and would cut the
answers of a pass into as many sends.

The socket is tried first; trio's scheduler is entered only when the kernel's buffer is full. What is not in memory is
read, or sent, by a worker thread, which waits for the disk in the loop's place.
"""

import math
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import trio

from ottla.server.memory_budget import MemoryBudget
from ottla.server.page_cache import is_cached, read_ahead, read_cached
from ottla.wire.chunks import Buffer, Chunk, FileSlice

_COPY_BELOW_BYTES = 32 * 1024
_JOIN_LIMIT_BYTES = 64 * 1024
_GATHER_BYTES = 256 * 1024
_UNCOUNTED_BYTES = 64 * 1024
_SENDFILE_STEP_BYTES = 2 * 1024 * 1024

# Threads of their own: readers of old records must not keep flushes from theirs.
_READING = trio.CapacityLimiter(8)

Result = TypeVar("Result")


class Outbox:
    """The answers of one connection that are ready and leave together. Large ones count in the memory budget until the
    client has taken them."""

    __slots__ = ("_budget", "_chunks", "_sock", "held_since", "size_bytes")

    def __init__(self, sock: socket.socket, budget: MemoryBudget | None = None) -> None:
        self._sock = sock
        self._budget = budget
        self._chunks: list[Chunk] = []
        self.size_bytes = 0
        self.held_since = math.inf  # when answers that count in the budget began to be sent

    def add_frame(self, chunks: list[Chunk]) -> None:
        """Add one answer, its length in front."""
        size = sum(map(len, chunks))
        self._chunks.append(size.to_bytes(4, "big"))
        self._chunks += chunks
        self.size_bytes += 4 + size

    def add_bytes(self, frame: bytes) -> None:
        """Add one answer that has its length in front."""
        self._chunks.append(frame)
        self.size_bytes += len(frame)

    def send_at_once(self) -> bool:
        """Send everything in one go, if it is little and in memory and the socket takes it, as is usual; what is left
        is for `flush` if this says False. Raises OSError when the peer is gone."""
        if self.size_bytes > _COPY_BELOW_BYTES:
            return False
        chunks = self._chunks
        for index, chunk in enumerate(chunks):
            if type(chunk) is FileSlice:
                data = read_cached(chunk)
                if data is None:
                    return False
                chunks[index] = data
        message = b"".join(chunks)  # type: ignore[arg-type]
        try:
            sent = self._sock.send(message)
        except BlockingIOError:
            return False
        self._chunks = []
        self.size_bytes = 0
        if sent == len(message):
            return True
        self._chunks.append(message[sent:])
        self.size_bytes = len(message) - sent
        return False

    async def flush(self) -> None:
        """Send everything. Raises OSError when the peer is gone."""
        if self._chunks and not self.send_at_once():
            chunks, self._chunks = self._chunks, []
            size, self.size_bytes = self.size_bytes, 0
            if size <= _UNCOUNTED_BYTES or self._budget is None:
                await send_chunks(self._sock, chunks)
            else:
                await self._send_counted(chunks, self._budget)

    async def _send_counted(self, chunks: list[Chunk], budget: MemoryBudget) -> None:
        in_memory = sum(len(chunk) for chunk in chunks if not isinstance(chunk, FileSlice))
        counted = in_memory if in_memory > _UNCOUNTED_BYTES else 0
        budget.take(counted)
        self.held_since = trio.current_time() if counted else math.inf
        try:
            await send_chunks(self._sock, chunks)
        finally:
            self.held_since = math.inf
            budget.release(counted)


async def send_chunks(sock: socket.socket, chunks: list[Chunk]) -> None:
    """Send everything, in order. Raises OSError when the peer is gone."""
    gathered: list[Buffer] = []
    size = 0
    last = len(chunks) - 1
    for index, chunk in enumerate(chunks):
        if not isinstance(chunk, FileSlice):
            gathered.append(chunk)
        elif len(chunk) < _COPY_BELOW_BYTES:
            # Read when its turn has come: a client that reads slowly must not have us hold all of its answer.
            data = read_cached(chunk)
            gathered.append(await _in_thread(chunk.read) if data is None else data)
        else:
            if gathered:
                await _send_bytes(sock, gathered, socket.MSG_MORE)
                gathered, size = [], 0
            await _send_file(sock, chunk)
            continue
        size += len(chunk)
        if size > _GATHER_BYTES and index < last:
            await _send_bytes(sock, gathered, socket.MSG_MORE)
            gathered, size = [], 0
    if gathered:
        await _send_bytes(sock, gathered, 0)


async def _send_bytes(sock: socket.socket, parts: Sequence[Buffer], flags: int) -> None:
    small: list[Buffer] = []
    size = 0
    for part in parts:
        if len(part) > _JOIN_LIMIT_BYTES:
            if small:
                await _send_all(sock, b"".join(small), socket.MSG_MORE)
                small, size = [], 0
            await _send_all(sock, part, socket.MSG_MORE if part is not parts[-1] else flags)
        else:
            small.append(part)
            size += len(part)
    if size:
        await _send_all(sock, small[0] if len(small) == 1 else b"".join(small), flags)


async def _send_all(sock: socket.socket, data: Buffer, flags: int) -> None:
    view = memoryview(data)
    while True:
        try:
            sent = sock.send(view, flags)
        except BlockingIOError:
            await trio.lowlevel.wait_writable(sock)
            continue
        if sent == len(view):
            return
        view = view[sent:]


async def _in_thread(function: Callable[[], Result]) -> Result:
    return await trio.to_thread.run_sync(function, limiter=_READING)


def _send_cold(out_fd: int, in_fd: int, position: int, length: int) -> int:
    read_ahead(in_fd, position)
    return os.sendfile(out_fd, in_fd, position, length)


async def _send_file(sock: socket.socket, chunk: FileSlice) -> None:
    out_fd = sock.fileno()
    in_fd = chunk.fileno()
    position = chunk.position
    end = position + chunk.length
    while position < end:
        step = min(end - position, _SENDFILE_STEP_BYTES)
        try:
            if is_cached(in_fd, position, step):
                sent = os.sendfile(out_fd, in_fd, position, step)
            else:  # the socket still does not block, only the disk does
                sent = await _in_thread(partial(_send_cold, out_fd, in_fd, position, step))
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
