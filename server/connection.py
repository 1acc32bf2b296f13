"""One client connection: read frames, have them answered in order, write the answers.

The non-blocking socket is used directly. Every whole frame in the receive buffer is handled before anything is
sent, and all answers leave in one go; trio's scheduler is entered only when the socket would block, when a
handler waits, or when this connection has had its share of the loop. One request is handled at a time, as in
Apache Kafka, so answers are in order by construction, and request memory is bounded: a connection holds its
receive buffer and nothing else. A view into that buffer is valid until its handler has answered.
"""

import errno
import logging
import socket
import struct
from time import perf_counter

import trio

from ottla.server.dispatch import CloseConnection, Dispatcher
from ottla.server.foreign_protocols import name_foreign_protocol
from ottla.server.memory_budget import MemoryBudget
from ottla.server.output import Outbox

log = logging.getLogger("ottla.server")

BASE_BUFFER_BYTES = 64 * 1024
KEPT_BUFFER_BYTES = 4 * 1024 * 1024
_FLUSH_BYTES = 256 * 1024
_TURN_SECONDS = 0.002
_unpack_size = struct.Struct(">i").unpack_from


class Connection:
    """Serve one accepted socket until it closes, fails, idles too long or the server stops."""

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        dispatcher: Dispatcher,
        budget: MemoryBudget,
        max_frame_bytes: int,
        now: float,
    ) -> None:
        self.peer = peer
        self.busy = False  # a request is being handled or its answer sent
        self.handling = False  # a handler is at work, and may wait as long as its request allows
        self.last_active = now
        self._sock = sock
        self._outbox = Outbox(sock, budget)
        self._dispatcher = dispatcher
        self._budget = budget
        self._max_frame_bytes = max_frame_bytes
        self._scope = trio.CancelScope()
        self._stopping = False
        self._buffer = bytearray()
        self._reserved_bytes = 0
        self._reserved_since = now
        self._start = 0
        self._end = 0
        self._turn_ends = 0.0

    async def serve(self) -> None:
        """The connection's whole life. Whatever goes wrong in it, even a bug of ours, ends with it."""
        try:
            with self._scope:
                await self._serve()
        except CloseConnection as reason:
            log.warning("connection closed peer=%s reason=%s", self.peer, reason)
        except OSError as error:
            # Only a disk answers EIO: a slice of a log could not be read, which the client finds cut off.
            level = logging.ERROR if error.errno == errno.EIO else logging.DEBUG
            log.log(level, "connection lost peer=%s error=%s", self.peer, error)
        except Exception:
            log.exception("connection failed peer=%s", self.peer)
        finally:
            self._drop_buffer()
            self._sock.close()
            self._dispatcher.connection_closed()

    def stop(self) -> None:
        """Close after the request being handled; at once when there is none."""
        self._stopping = True
        if not self.busy:
            self._scope.cancel()

    def abort(self, reason: str) -> None:
        """Close now, saying why in the log."""
        log.info("connection closed peer=%s reason=%s", self.peer, reason)
        self._scope.cancel()

    def holds_memory_since(self, time: float) -> bool:
        """Whether room for a large frame that is still not complete, or for answers that the client does not take, has
        been held since before `time`."""
        if self._outbox.held_since < time:
            return True
        return self._reserved_bytes > 0 and self._reserved_since < time and self._start != self._end

    def peer_has_left(self) -> bool:
        """Whether the peer has closed its side while its request is at work, which reading would have noticed."""
        try:
            return not self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def trim(self) -> None:
        """Give the buffer of a quiet connection back."""
        if not self.busy and self._start == self._end and self._buffer:
            self._drop_buffer()

    async def _serve(self) -> None:
        self._begin_turn()
        while not self._stopping:
            if self._start == self._end and len(self._buffer) == BASE_BUFFER_BYTES:
                self._start = self._end = 0  # room enough, as nearly always
            else:
                await self._make_room()
            try:
                received = self._receive()
            except BlockingIOError:
                await self._wait_for_bytes()
                continue
            if received == 0:
                return
            self._end += received
            self.busy = True
            self.last_active = trio.current_time()
            await self._handle_frames()
            self.busy = False
            if perf_counter() > self._turn_ends:
                self.last_active = trio.current_time()
                await self._share_loop()
            if received < BASE_BUFFER_BYTES and self._start == self._end and not self._stopping:
                # All that was there has been answered: asking for more would cost a call, and mostly be in vain.
                await self._wait_for_bytes()

    async def _wait_for_bytes(self) -> None:
        await trio.lowlevel.wait_readable(self._sock)
        self._begin_turn()

    def _begin_turn(self) -> None:
        self._turn_ends = perf_counter() + _TURN_SECONDS

    async def _share_loop(self) -> None:
        """Let the others go on if this connection has had its turn."""
        if perf_counter() > self._turn_ends:
            await trio.lowlevel.checkpoint()
            self._begin_turn()

    def _receive(self) -> int:
        return self._sock.recv_into(memoryview(self._buffer)[self._end :])

    async def _handle_frames(self) -> None:
        """Answer every whole frame in the buffer; what is left over is the beginning of the next one."""
        view = memoryview(self._buffer)
        outbox = self._outbox
        while self._end - self._start >= 4:
            size = self._frame_size()
            begin = self._start + 4
            if self._end - begin < size:
                break
            self._start = begin + size
            await self._answer(view[begin : begin + size])
            if outbox.size_bytes > _FLUSH_BYTES or perf_counter() > self._turn_ends:
                await outbox.flush()
                await self._share_loop()
            if self._stopping:
                break
        if outbox.size_bytes and not outbox.send_at_once():
            await outbox.flush()

    async def _answer(self, frame: memoryview) -> None:
        self.handling = True
        try:
            await self._dispatcher.answer(frame, self._outbox)
        except CloseConnection:
            await self._outbox.flush()  # the requests before this one were good
            raise
        finally:
            self.handling = False

    def _frame_size(self) -> int:
        size: int = _unpack_size(self._buffer, self._start)[0]
        if 0 <= size <= self._max_frame_bytes:
            return size
        foreign = name_foreign_protocol(bytes(self._buffer[self._start : self._end][:16]))
        if foreign is not None:
            raise CloseConnection(f"{foreign} bytes on a plaintext Kafka listener")
        if size < 0:
            raise CloseConnection(f"negative frame length {size}")
        raise CloseConnection(
            f"frame of {size} bytes is over socket.request.max.bytes={self._max_frame_bytes}"
        )

    async def _make_room(self) -> None:
        """Have free space behind the bytes received, for the whole of the frame that has begun."""
        held = self._end - self._start
        if held == 0:
            self._start = self._end = 0
            if len(self._buffer) > KEPT_BUFFER_BYTES:
                self._drop_buffer()
        needed = BASE_BUFFER_BYTES
        if held >= 4:
            needed = max(needed, 4 + self._frame_size())
        if needed > len(self._buffer):
            # Announced bytes are only promised: more room is made when the bytes sent have filled what there is.
            if held == len(self._buffer):
                await self._grow(needed)
            elif self._start:
                self._move_to_front(held)
        elif self._start + needed > len(self._buffer):
            self._move_to_front(held)

    def _move_to_front(self, held: int) -> None:
        self._buffer[:held] = self._buffer[self._start : self._end]
        self._start, self._end = 0, held

    async def _grow(self, size: int) -> None:
        # A base buffer waits for nobody and is bounded by the number of connections; the budget is for the rest.
        extra = size - BASE_BUFFER_BYTES - self._reserved_bytes
        if extra > 0:
            if not self._budget.reserve_nowait(extra):
                await self._budget.reserve(extra)
            self._reserved_bytes += extra
            self._reserved_since = trio.current_time()
        held = self._end - self._start
        grown = bytearray(size)
        grown[:held] = self._buffer[self._start : self._end]
        self._buffer = grown
        self._start, self._end = 0, held

    def _drop_buffer(self) -> None:
        self._buffer = bytearray()
        self._budget.release(self._reserved_bytes)
        self._reserved_bytes = 0
