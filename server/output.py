"""Send chunks on a non-blocking socket: bytes are gathered, file slices leave by sendfile.

A slice of some kilobytes is read and gathered like bytes: sendfile costs more than the copy, and would cut the
answers of a pass into as many sends.

`send_some` sends what can be sent at once and says what keeps it from sending more; a connection waits for that where
it waits for its bytes (see connection), or `flush` awaits it. What is not in memory is read, or sent, by a worker
thread, which waits for the disk in the loop's place.
"""

import math
import os
import socket
from collections.abc import Callable
from enum import Enum, auto
from time import perf_counter

import trio

from ottla.log_store.page_cache import is_in_memory, probe
from ottla.server.cold_reads import READING, ReadAhead, read_ahead, read_cached
from ottla.server.memory_budget import MemoryBudget
from ottla.wire.chunks import Buffer, Chunk, FileSlice

COPY_BELOW_BYTES = 32 * 1024
_JOIN_LIMIT_BYTES = 64 * 1024
_GATHER_BYTES = 256 * 1024
_LEAST_BYTES = 1024  # of a chunk, as far as gathering goes: each takes its time, however small it is
_UNCOUNTED_BYTES = 64 * 1024
_TURN_BYTES = 2 * 1024 * 1024  # a reader as quick as we are would keep the loop for all of a large answer
_CHUNK_BYTES = 8 * 1024  # that could be sent in the time that it takes to gather one more chunk


class Progress(Enum):
    """How far the sending has come."""

    DONE = auto()
    FULL = auto()  # the socket takes no more for now
    TURN = auto()  # others should have their turn
    COLD = auto()  # what comes next is not in memory


class Outbox:
    """The answers of one connection that are ready and leave together. Large ones that the client does not take at
    once count in the memory budget until it has."""

    __slots__ = (
        "_ahead",
        "_budget",
        "_chunks",
        "_counted_bytes",
        "_next",
        "_sock",
        "failure",
        "held_since",
        "settle",
        "size_bytes",
    )

    def __init__(self, sock: socket.socket, budget: MemoryBudget | None = None) -> None:
        self._sock = sock
        self._budget = budget
        self._ahead: ReadAhead | None = None  # from when something was not in memory
        self._chunks: list[Chunk] = []
        self._next = 0  # of the chunks; those before it are sent
        self._counted_bytes = 0
        self.size_bytes = 0
        # Answers are to come when all clients of this pass have been served; this has them come at once, to everybody.
        # Whatever is asked for after them has to wait for that.
        self.settle: Callable[[], None] | None = None
        self.failure: Exception | None = None  # what became of one of them, and ends the connection
        self.held_since = math.inf  # when the client was first offered answers that count in the budget

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

    def add_chunks(self, chunks: list[Chunk]) -> None:
        """The same of one that is in pieces."""
        self._chunks += chunks
        self.size_bytes += sum(map(len, chunks))

    def close(self) -> None:
        """Whatever is not sent will not be."""
        self._forget()
        self.failure = None  # whose traceback may lead back here

    def send_some(self) -> Progress:
        """Send as much as goes at once. Raises OSError when the peer is gone."""
        if self.size_bytes <= COPY_BELOW_BYTES and self._next == 0:
            progress = self._send_little()
        else:
            progress = self._send_much()
        if progress is Progress.FULL:
            self._count()
        return progress

    async def flush(self) -> None:
        """Send everything. Raises OSError when the peer is gone."""
        while self.size_bytes:
            progress = self.send_some()
            if progress is Progress.FULL:
                await trio.lowlevel.wait_writable(self._sock)
            elif progress is Progress.TURN:
                await trio.lowlevel.checkpoint()
            elif progress is Progress.COLD:
                await self._go_on_cold()

    def _send_little(self) -> Progress:
        """Everything in one go, as is usual."""
        chunks = self._chunks
        for index, chunk in enumerate(chunks):
            if type(chunk) is FileSlice:
                data = read_cached(chunk)
                if data is None:
                    return self._send_much()
                chunks[index] = data
        message = b"".join(chunks)  # type: ignore[arg-type]
        try:
            sent = self._sock.send(message)
        except BlockingIOError:
            return Progress.FULL
        if sent == len(message):
            if self._counted_bytes:
                self._forget()
            self._chunks = []
            self.size_bytes = 0
            return Progress.DONE
        self._chunks = [message[sent:]]
        self.size_bytes = len(message) - sent
        return Progress.FULL

    def _send_much(self) -> Progress:
        left = _TURN_BYTES
        # To whom everything was in memory so far it is likely to be.
        is_cached = probe if self._ahead is None else is_in_memory
        try:
            while self._next < len(self._chunks):
                if left <= 0:
                    return Progress.TURN
                chunk = self._chunks[self._next]
                if isinstance(chunk, FileSlice) and len(chunk) >= COPY_BELOW_BYTES:
                    position, length = chunk.position, min(len(chunk), left)
                    if not is_cached(chunk.fileno(), position, length):
                        return Progress.COLD
                    sent = os.sendfile(self._sock.fileno(), chunk.fileno(), position, length)
                    self._note_sent(chunk, sent)
                else:
                    first = self._next
                    data = self._gather()
                    if data is None:
                        return Progress.COLD
                    left -= (self._next - first) * _CHUNK_BYTES
                    more = socket.MSG_MORE if len(data) < self.size_bytes else 0
                    sent = self._sock.send(data, more)
                    self._pass_over(data, sent)
                left -= sent
        except BlockingIOError:
            return Progress.FULL
        self._forget()
        return Progress.DONE

    def _gather(self) -> Buffer | None:
        """The bytes that come next, up to a large slice, put in the place of their chunks; None if they are not in
        memory. Slices are read only now: a client that reads slowly must not have us hold all of its answer."""
        chunks, first = self._chunks, self._next
        if len(chunks[first]) > _JOIN_LIMIT_BYTES:
            return chunks[first]  # type: ignore[return-value]
        gathered: list[Buffer] = []
        size = 0
        for index in range(first, len(chunks)):
            chunk = chunks[index]
            if isinstance(chunk, FileSlice):
                if len(chunk) >= COPY_BELOW_BYTES or (data := read_cached(chunk)) is None:
                    break
                gathered.append(data)
            elif len(chunk) > _JOIN_LIMIT_BYTES:
                break
            else:
                gathered.append(chunk)
            size += max(len(chunk), _LEAST_BYTES)
            if size > _GATHER_BYTES:
                break
        if not gathered:
            return None
        joined = gathered[0] if len(gathered) == 1 else b"".join(gathered)
        self._next = first + len(gathered) - 1
        chunks[first : self._next] = [b""] * (len(gathered) - 1)
        chunks[self._next] = joined
        return joined

    def _pass_over(self, data: Buffer, sent: int) -> None:
        self.size_bytes -= sent
        if sent == len(data):
            self._leave_behind()
        else:
            self._chunks[self._next] = memoryview(data)[sent:]

    def _leave_behind(self) -> None:
        self._chunks[self._next] = b""  # it is in the client's hands: let go of it
        self._next += 1

    def _note_sent(self, chunk: FileSlice, sent: int) -> None:
        if sent == 0:
            # The promised length is already on the wire: nothing but closing keeps the client from misreading.
            raise OSError(f"log file ended {len(chunk)} bytes before the slice that was promised")
        self.size_bytes -= sent
        if sent == len(chunk):
            self._leave_behind()
        else:
            self._chunks[self._next] = FileSlice(chunk.file, chunk.position + sent, len(chunk) - sent)

    async def _go_on_cold(self) -> None:
        """Read the slice that comes next if it is small, else send of it what the socket takes."""
        chunk = self._chunks[self._next]
        assert isinstance(chunk, FileSlice)
        if len(chunk) < COPY_BELOW_BYTES:
            self._chunks[self._next] = await READING.run(chunk.read)
            return
        # The socket still does not block, only the disk does.
        fd, position, length = chunk.fileno(), chunk.position, min(len(chunk), _TURN_BYTES)
        if self._ahead is None:
            self._ahead = ReadAhead()
        ahead = self._ahead.bytes_from(fd, position, length)
        try:
            sent = await READING.run(_send_cold, self._sock.fileno(), fd, position, length, ahead)
        except BlockingIOError:
            self._count()
            await trio.lowlevel.wait_writable(self._sock)
            return
        self._note_sent(chunk, sent)

    def _count(self) -> None:
        """The client does not take all at once."""
        if self._budget is None or self._counted_bytes or self.size_bytes <= _UNCOUNTED_BYTES:
            return
        left = self._chunks[self._next :]
        in_memory = sum(len(chunk) for chunk in left if not isinstance(chunk, FileSlice))
        if in_memory > _UNCOUNTED_BYTES:
            self._counted_bytes = in_memory
            self._budget.take(in_memory)
            self.held_since = perf_counter()

    def _forget(self) -> None:
        """Everything is sent, or never will be."""
        self._chunks = []
        self._next = self.size_bytes = 0
        if self._counted_bytes and self._budget is not None:
            self._budget.release(self._counted_bytes)
            self._counted_bytes = 0
        self.held_since = math.inf


def _send_cold(out_fd: int, in_fd: int, position: int, length: int, ahead: int) -> int:
    read_ahead(in_fd, position, ahead)
    return os.sendfile(out_fd, in_fd, position, length)
