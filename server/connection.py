"""One client connection: read frames, have them answered in order, write the answers.

The non-blocking socket is used directly. Every whole frame in the receive buffer is handled before anything is sent,
and all answers leave in one go. What can be done at once is done by `on_ready`, a plain function that is called as
soon as there are bytes, or room for more of an answer that the socket did not take whole (see ready_clients); the
connection's task goes on only where something must be awaited: a handler that waits, records that must be read from the
disk, memory for a large frame. One request is handled at a time, as in Apache Kafka, so answers are in order by
construction, and request memory is bounded: a connection holds its receive buffer and nothing else. A view into that
buffer is valid until its handler has answered.
"""

import errno
import logging
import mmap
import socket
import struct
from collections.abc import Coroutine
from contextlib import suppress
from select import EPOLLIN
from time import perf_counter
from typing import Any

import trio

from ottla.server.dispatch import CloseConnection, Dispatcher
from ottla.server.foreign_protocols import name_foreign_protocol
from ottla.server.memory_budget import MemoryBudget
from ottla.server.output import Outbox, Progress
from ottla.server.parked import ParkedAnswer
from ottla.server.ready_clients import INPUT, ReadyClients, Timer

log = logging.getLogger("ottla.server")

BASE_BUFFER_BYTES = 64 * 1024
KEPT_BUFFER_BYTES = 4 * 1024 * 1024
_FLUSH_BYTES = 256 * 1024
_TURN_SECONDS = 0.001
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
        ready_clients: ReadyClients | None = None,
    ) -> None:
        self.peer = peer
        self.busy = False  # a request is being handled or its answer sent
        self.handling = False  # a handler is at work, and may wait as long as its request allows
        self.has_ended = False
        self.last_active = now
        self._sock = sock
        self._outbox = Outbox(sock, budget)
        self._dispatcher = dispatcher
        self._budget = budget
        self._max_frame_bytes = max_frame_bytes
        self._scope = trio.CancelScope()
        self._stopping = False
        self._buffer: bytearray | mmap.mmap = bytearray()
        self._view = memoryview(self._buffer)
        self._reserved_bytes = 0
        self._wanted_bytes = 0  # of the budget, which has to be waited for
        self._reserved_since = now
        self._start = 0
        self._end = 0
        self._turn_ends = 0.0
        self._ready_clients = ready_clients
        self._task: trio.lowlevel.Task | None = None  # while it waits to be needed
        self._is_proceeding = False  # whoever is called first meanwhile may be this connection itself
        self._is_needed = False  # it is about to be woken
        self._rest: Coroutine[Any, Any, None] | None = None  # what the task has to await before anything else
        self._parked: ParkedAnswer | None = None  # the request that waits without the task
        self._is_sending = False  # an answer waits without the task for the socket to take more of it
        self._was_full = False  # the socket, at some time; whether it takes more is told since
        self._has_more = False  # there is more to be done, but this connection has had its share of the loop
        self._is_next = False  # it is about to go on with either
        self._timer: Timer | None = None
        self._time_is_up = False
        self._is_called = False
        self._failure: Exception | None = None
        self._has_left = False
        self._may_have_more = True  # bytes may be there that nobody has tried to receive
        self._is_ending = False  # the end of them is there

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
            self.has_ended = True
            self._failure = None  # whose traceback leads back here
            self._leave_parked()
            if self._rest is not None:
                self._rest.close()
            if self._ready_clients is not None:
                self._ready_clients.remove(self._sock)
            self._drop_buffer()
            self._outbox.close()
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
        if not self.busy and self._start == self._end:
            self._drop_buffer()

    # ---- what is done at once

    def on_ready(self, events: int) -> None:
        """Bytes have come, or the end of them, or the socket takes more: do what can be done at once, and wake the task
        for the rest."""
        if events & INPUT:
            self._may_have_more = True
            self._is_ending = events & INPUT != EPOLLIN
        elif not self._is_sending:
            return
        self._resume()

    def _resume(self) -> None:
        if self._task is None or self._is_needed or self._parked is not None or self._is_proceeding:
            return
        assert self._ready_clients is not None
        self._turn_ends = perf_counter() + self._ready_clients.turn_seconds
        if self._failure is not None or not self._proceed():
            self._is_needed = True
            self._ready_clients.wake(self._wake)

    def _wake(self) -> None:
        self._is_needed = False
        task, self._task = self._task, None
        if task is not None:  # it may have been cancelled meanwhile
            trio.lowlevel.reschedule(task)

    def _begin_turn(self) -> None:
        self._turn_ends = perf_counter() + _TURN_SECONDS

    def _proceed(self) -> bool:
        """Answer and receive. Returns whether that was all; if not, something is to be awaited, this connection has had
        its share of the loop, or it has ended."""
        self._has_more = False
        self._is_proceeding = True
        try:
            has_some = self._end - self._start >= 4 or self._outbox.size_bytes or self._outbox.failure
            if (not has_some or self._answer_frames()) and self._receive():
                return True
            return self._parked is not None or self._is_sending or self._has_more
        except Exception as failure:  # noqa: BLE001 - the task raises it, where all ends of a connection are told
            self._failure = failure
            return False
        finally:
            self._is_proceeding = False

    def _receive(self) -> bool:
        while self._may_have_more and not self._stopping:
            if self._start == self._end and len(self._buffer) == BASE_BUFFER_BYTES:
                self._start = self._end = 0  # room enough, as nearly always
            elif not self._make_room():
                return False
            end = self._end
            try:
                received = self._sock.recv_into(self._view[end:] if end else self._buffer)
            except BlockingIOError:
                self._may_have_more = False
                break
            if received == 0:
                self._has_left = True
                return False
            self._end = end = end + received
            # Where less came than there was room for, that was all: to ask again would cost a call, mostly in vain. But
            # the end is told only once, with the bytes before it.
            self._may_have_more = end == len(self._buffer) or self._is_ending
            self.last_active = perf_counter()
            if not self._answer_frames():
                return False
            if self._may_have_more and perf_counter() > self._turn_ends:
                return self._give_way()
        return not self._stopping

    def _answer_frames(self) -> bool:
        """Answer every whole frame in the buffer and send the answers; what is left over is the beginning of the next
        frame. Returns False at what cannot be done at once."""
        outbox = self._outbox
        if outbox.failure is not None:
            raise outbox.failure
        if outbox.size_bytes and not self._send():
            return False
        self.busy = True
        left = self._end - self._start
        while left >= 4 and not self._stopping:
            begin = self._start + 4
            (size,) = _unpack_size(self._buffer, self._start)
            if not 0 <= size <= self._max_frame_bytes:
                raise self._bad_frame(size)
            left -= 4 + size
            if left < 0:
                break
            self._start = end = begin + size
            rest = self._dispatcher.answer(self._view[begin:end], outbox)
            if rest is not None:
                self._wait_for(rest)
                return False
            if outbox.size_bytes > _FLUSH_BYTES and not self._send():
                return False
            if left >= 4 and perf_counter() > self._turn_ends:
                return self._give_way()
        if outbox.size_bytes:
            if self._ready_clients is not None:
                # Who waits for records has been waiting longer than who has just sent them.
                self._ready_clients.call_first()
            if not self._send():
                return False
        if outbox.settle is not None and self._ready_clients is not None:
            self._ready_clients.call_at_end(self._resume)
            return True
        self.busy = False
        return True

    def _send(self) -> bool:
        """Send what is ready; whether that was all. If the socket takes no more, or this connection has sent its share,
        it goes on from the loop, and from the task where there is no other way."""
        self._is_sending = False
        is_little = self._outbox.size_bytes < BASE_BUFFER_BYTES
        progress = self._outbox.send_some()
        clients = self._ready_clients
        if progress is Progress.DONE:
            if clients is not None and is_little:
                clients.has_answered = True
            return True
        if clients is not None and progress is not Progress.COLD:
            self._is_sending = True
            if progress is Progress.TURN:
                self._go_on_soon()
            elif not self._was_full:
                self._was_full = True
                clients.add_output(self._sock)
        return False

    def _give_way(self) -> bool:
        """Go on when others have had their turn: from the loop, or from the task where there is no other way."""
        if self._ready_clients is not None:
            self._has_more = True
            self._go_on_soon()
        return False

    def _go_on_soon(self) -> None:
        if not self._is_next and self._ready_clients is not None:
            self._is_next = True
            self._ready_clients.take_turn(self._on_turn)

    def _on_turn(self) -> None:
        self._is_next = False
        if self._is_sending or self._has_more:
            self._resume()

    # ---- a request that waits without the task

    def _wait_for(self, rest: Coroutine[Any, Any, None] | ParkedAnswer) -> None:
        self.handling = True
        if isinstance(rest, ParkedAnswer):
            clients = self._ready_clients
            if clients is not None and (
                not self._outbox.size_bytes or self._outbox.send_some() is Progress.DONE
            ):
                self._parked = rest
                self._time_is_up = False
                self._timer = clients.call_after(rest.max_wait_seconds, self._on_time_up)
                rest.watch(self._on_change)
                return
            rest = rest.wait(self._outbox)
        self._rest = rest

    def _on_change(self) -> None:
        """What the parked request waits for may have happened; called in the middle of whatever made it happen."""
        if not self._is_called and self._ready_clients is not None:
            self._is_called = True
            self._ready_clients.call_soon(self._try_parked)

    def _on_time_up(self) -> None:
        self._time_is_up = True
        self._try_parked()

    def _try_parked(self) -> None:
        self._is_called = False
        if self._parked is None or self._task is None:
            return
        try:
            if not self._parked.try_to_answer(self._outbox, time_is_up=self._time_is_up):
                return
        except Exception as failure:  # noqa: BLE001 - as in _proceed
            self._failure = failure
        self._leave_parked()
        self._resume()

    def _leave_parked(self) -> None:
        if self._parked is not None:
            self._parked.close()
            self._parked = None
            self.handling = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ---- what the task does

    async def _serve(self) -> None:
        is_needed = False
        if self._ready_clients is not None:
            # It is called for bytes that are there already, too.
            self._ready_clients.add(self._sock, self.on_ready)
        else:
            self._begin_turn()
            is_needed = not self._proceed()
        while True:
            if not is_needed:
                await self._wait_until_needed()
            if self._failure is not None:
                if isinstance(self._failure, CloseConnection):
                    await self._outbox.flush()  # the requests before this one were good
                raise self._failure
            if self._has_left:
                await self._outbox.flush()  # it may still listen
                return
            await self._go_on()
            if self._stopping:
                return
            if self._ready_clients is not None:
                # From the loop, where turns are shared: of the tasks that go on in one pass, each would have its own.
                self.busy = self._end - self._start >= 4
                if self.busy or self._may_have_more:
                    self._has_more = True
                    self._go_on_soon()
                is_needed = False
                continue
            if perf_counter() > self._turn_ends:
                await trio.lowlevel.checkpoint()
                self._begin_turn()
            is_needed = not self._proceed()

    async def _wait_until_needed(self) -> None:
        if self._ready_clients is not None:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._leave)
            return
        while True:
            await trio.lowlevel.wait_readable(self._sock)
            self._may_have_more = True
            self._begin_turn()
            if not self._proceed():
                return

    def _leave(self, _: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED

    async def _go_on(self) -> None:
        """Await what has to be awaited, and send what could not be sent at once."""
        rest, self._rest = self._rest, None
        if rest is not None:
            try:
                await rest
            except CloseConnection:
                await self._outbox.flush()
                raise
            finally:
                self.handling = False
        elif self._wanted_bytes:
            await self._outbox.flush()
            await self._budget.reserve(self._wanted_bytes)
            self._reserved_bytes += self._wanted_bytes
            self._wanted_bytes = 0
            self._grow(BASE_BUFFER_BYTES + self._reserved_bytes)
        await self._outbox.flush()
        self.busy = False

    def _bad_frame(self, size: int) -> CloseConnection:
        """Why a frame that says it has this size is not taken."""
        foreign = name_foreign_protocol(bytes(self._buffer[self._start : self._end][:16]))
        if foreign is not None:
            return CloseConnection(f"{foreign} bytes on a plaintext Kafka listener")
        if size < 0:
            return CloseConnection(f"negative frame length {size}")
        return CloseConnection(
            f"frame of {size} bytes is over socket.request.max.bytes={self._max_frame_bytes}"
        )

    def _make_room(self) -> bool:
        """Have free space behind the bytes received, for the whole of the frame that has begun. Returns False if the
        memory for it must be waited for."""
        held = self._end - self._start
        if held == 0:
            self._start = self._end = 0
            if len(self._buffer) > KEPT_BUFFER_BYTES:
                self._drop_buffer()
        needed = BASE_BUFFER_BYTES
        if held >= 4:
            needed = max(needed, 4 + _unpack_size(self._buffer, self._start)[0])
        if needed > len(self._buffer):
            # Announced bytes are only promised: more room is made when the bytes sent have filled what there is.
            if held == len(self._buffer):
                # A base buffer waits for nobody and is bounded by the number of connections: the budget is for more.
                extra = needed - BASE_BUFFER_BYTES - self._reserved_bytes
                if extra > 0:
                    self._reserved_since = perf_counter()
                    if not self._budget.reserve_nowait(extra):
                        self._wanted_bytes = extra
                        return False
                    self._reserved_bytes += extra
                self._grow(needed)
            elif self._start:
                self._move_to_front(held)
        elif self._start + needed > len(self._buffer):
            self._move_to_front(held)
        return True

    def _move_to_front(self, held: int) -> None:
        self._buffer[:held] = self._buffer[self._start : self._end]
        self._start, self._end = 0, held

    def _grow(self, size: int) -> None:
        held = self._end - self._start
        grown = _new_buffer(size)
        grown[:held] = self._buffer[self._start : self._end]
        self._buffer = grown
        self._view = memoryview(grown)
        self._start, self._end = 0, held

    def _drop_buffer(self) -> None:
        self._buffer = bytearray()
        self._view = memoryview(self._buffer)
        self._budget.release(self._reserved_bytes)
        self._reserved_bytes = 0


def _new_buffer(size: int) -> bytearray | mmap.mmap:
    """The one that every connection has is memory of its own, which the system has back as soon as it is dropped. What
    thousands of connections drop would else stay with the process, as holes between what is in use."""
    if size == BASE_BUFFER_BYTES:
        with suppress(OSError):  # the system counts such pieces
            return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return bytearray(size)
