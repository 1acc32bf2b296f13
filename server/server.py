"""The life of a broker process: bind, open, register, accept, and stop in order.

Start: bind the listeners (so that a port of 0 is known), open the metadata and every log, register this broker,
then listen. Stop: accept nobody new, wake whoever waits, finish what is being answered, flush and mark the
directories clean; what is not done by the deadline is cut off, which recovery covers.
"""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import Callable
from functools import partial
from time import perf_counter

import trio

from ottla.config.broker_config import BrokerConfig
from ottla.config.listeners import Endpoint
from ottla.server.broker import Broker
from ottla.server.connection import Connection
from ottla.server.connection_limits import ConnectionLimits
from ottla.server.context import RequestContext
from ottla.server.dispatch import Dispatcher
from ottla.server.limits import Limits
from ottla.server.listener import Listener, bind
from ottla.server.memory_budget import MemoryBudget
from ottla.server.quick_answers import QuickAnswer, quick_answers
from ottla.server.ready_clients import ready_clients
from ottla.server.turns import map_in_turns
from ottla.wire.dataclass import replace

log = logging.getLogger("ottla.server")

_SWEEP_SECONDS = 1.0
_TRIM_AFTER_SECONDS = 5.0
_STALLED_FRAME_SECONDS = 30.0
_LEFT_AFTER_SECONDS = 2.0  # long enough for a client that closes its sending side and still reads
_STOP_SECONDS = 10.0


class DataError(Exception):
    """The disk refuses the data directories at start; the text is one sentence for the user."""


class Server:
    """One broker with its listeners."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._applied = config
        self._limits = Limits.from_config(config)
        self._budget = MemoryBudget(self._limits.queued_bytes)
        self._counts = ConnectionLimits(self._limits)
        self._listeners: list[Listener] = []
        self._stop_requested = trio.Event()
        self.broker: Broker
        self._quick_answers: dict[int, QuickAnswer] = {}
        self.endpoints: list[Endpoint] = []

    def request_stop(self) -> None:
        """Begin the graceful stop. May be called again."""
        self._stop_requested.set()

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Serve until asked to stop, and call `on_ready` once clients can connect."""
        bound: list[tuple[Endpoint, socket.socket]] = []
        try:
            for endpoint in self._config.listeners():
                sock = bind(endpoint)
                bound.append((replace(endpoint, port=sock.getsockname()[1]), sock))
            self.endpoints = [endpoint for endpoint, _ in bound]
            self.broker = await self._open_broker()
            self._quick_answers = quick_answers(self.broker, ready_clients())
            try:
                self._listeners = [
                    Listener(endpoint, sock, self._limits, self._counts, self._connect)
                    for endpoint, sock in bound
                ]
                await self._serve(on_ready)
            finally:
                with trio.CancelScope(shield=True):
                    await self.broker.close()
        finally:
            for _, sock in bound:
                sock.close()

    async def _open_broker(self) -> Broker:
        try:
            return await Broker.open(self._config, self.endpoints, random.SystemRandom())
        except OSError as error:
            where = error.filename or ",".join(self._config.log_dirs())
            raise DataError(f"cannot use {where} for data: {error.strerror or error}") from error

    async def _serve(self, on_ready: Callable[[], None]) -> None:
        async with trio.open_nursery() as background:
            background.start_soon(self._sweep)
            background.start_soon(self.broker.run_background)
            async with trio.open_nursery() as connections:
                for listener in self._listeners:
                    listener.listen()
                    connections.start_soon(listener.accept_until_stopped, connections)
                on_ready()
                await self._stop_requested.wait()
                for listener in self._listeners:
                    listener.stop_accepting()
                self.broker.begin_stop()
                for connection in self._connections():
                    connection.stop()
                connections.cancel_scope.deadline = trio.current_time() + _STOP_SECONDS
            background.cancel_scope.cancel()

    def _connections(self) -> list[Connection]:
        return [connection for listener in self._listeners for connection in listener.connections]

    def _connect(self, sock: socket.socket, peer: str, host: str, listener_name: str) -> Connection:
        context = RequestContext(self.broker, listener_name, host)
        dispatcher = Dispatcher(self.broker.registry, context, self._quick_answers)
        return Connection(
            sock,
            peer,
            dispatcher,
            self._budget,
            self._limits.max_frame_bytes,
            perf_counter(),
            ready_clients(),
        )

    async def _sweep(self) -> None:
        while True:
            await trio.sleep(_SWEEP_SECONDS)
            try:
                await self._sweep_once()
            except Exception:
                log.exception("sweep failed")

    async def _sweep_once(self) -> None:
        """Close connections that idle, wait for nobody or hold memory others wait for; trim the buffers of
        quiet ones.

        Limits on connections that were changed dynamically are taken up here too.
        """
        if self.broker.config is not self._applied:
            self._applied = self.broker.config
            self._counts.update(Limits.from_config(self._applied))
        now = perf_counter()
        starved = self._budget.has_waiters
        # Memory that many connections had takes its time to be given back.
        await map_in_turns(partial(self._sweep_connection, now, starved), self._connections())

    def _sweep_connection(self, now: float, starved: bool, connection: Connection) -> None:
        quiet = now - connection.last_active
        if connection.has_ended:  # between two turns
            pass
        elif connection.handling:
            if quiet > _LEFT_AFTER_SECONDS and connection.peer_has_left():
                connection.abort("the client left while its request waited")
        elif quiet > self._limits.idle_seconds > 0:
            connection.abort("idle for connections.max.idle.ms")
        elif starved and connection.holds_memory_since(now - _STALLED_FRAME_SECONDS):
            connection.abort("held memory for a frame or an answer it did not finish while others waited")
        elif starved or quiet > _TRIM_AFTER_SECONDS:
            connection.trim()
