"""Listening sockets: bind what `listeners` names, accept within the limits, start a task per connection."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable

import trio

from ottla.config.listeners import Endpoint
from ottla.server.connection import Connection
from ottla.server.connection_limits import ConnectionLimits
from ottla.server.limits import Limits
from ottla.server.local_pacing import give_back_pacing, leave_out_pacing

log = logging.getLogger("ottla.server")

# The client gave up before it was accepted; anything else, such as no descriptors left, does not pass at once.
_GONE = {errno.ECONNABORTED, errno.ECONNRESET, errno.EPROTO, errno.EPERM}
_FULL_PAUSE_SECONDS = 1.0
_REFUSED_PAUSE_SECONDS = 0.1
# Whoever comes while the backlog is full tries again a second later: many that come at once must not fill it, and the
# others are kept waiting for a millisecond or two.
_ACCEPTS_IN_A_ROW = 8
_SHORTEST_PAUSE_SECONDS = 0.001

MakeConnection = Callable[[socket.socket, str, str, str], Connection]


class BindError(Exception):
    """A listener's address cannot be bound; the text is one sentence for the user."""


def bind(endpoint: Endpoint) -> socket.socket:
    """A bound socket that does not listen yet. An empty host means every interface, IPv6 included."""
    try:
        family, address = _resolve(endpoint)
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections begin with these, as they inherit them.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not endpoint.host else 1)
            sock.setblocking(False)
            sock.bind(address)
        except BaseException:
            sock.close()
            raise
    except OSError as error:
        raise _refused(endpoint, error) from error
    return sock


def _refused(endpoint: Endpoint, error: OSError) -> BindError:
    return BindError(f"cannot listen on {endpoint}: {error.strerror or error}")


def _resolve(endpoint: Endpoint) -> tuple[int, tuple[str, int] | tuple[str, int, int, int]]:
    if not endpoint.host:
        if socket.has_dualstack_ipv6():
            return socket.AF_INET6, ("::", endpoint.port, 0, 0)
        return socket.AF_INET, ("0.0.0.0", endpoint.port)
    # As bytes it needs none of the code for names in other scripts.
    host = endpoint.host.encode() if endpoint.host.isascii() else endpoint.host
    found = socket.getaddrinfo(host, endpoint.port, type=socket.SOCK_STREAM)
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    family, _, _, _, address = found[0]
    return family, address  # type: ignore[return-value]


class Listener:
    """Accepts connections on one bound socket."""

    def __init__(
        self,
        endpoint: Endpoint,
        sock: socket.socket,
        limits: Limits,
        counts: ConnectionLimits,
        make: MakeConnection,
    ) -> None:
        self.endpoint = endpoint
        self._sock = sock
        self._limits = limits
        self._counts = counts
        self._make = make
        self._pacing = leave_out_pacing(sock)
        self.connections: set[Connection] = set()
        self._left = trio.Event()
        self._accepting = trio.CancelScope()

    def listen(self) -> None:
        """Open the door. Two sockets may be bound to one address; only now the second is refused: BindError."""
        try:
            self._sock.listen(self._limits.backlog)
        except OSError as error:
            raise _refused(self.endpoint, error) from error

    def stop_accepting(self) -> None:
        """Let nobody else in; the connections that are there go on."""
        self._accepting.cancel()

    async def accept_until_stopped(self, nursery: trio.Nursery) -> None:
        """Accept until told to stop; each connection is served in the nursery."""
        with self._accepting:
            await self._accept(nursery)

    async def _accept(self, nursery: trio.Nursery) -> None:
        in_a_row = 0
        while True:
            while self._counts.is_full():
                # Looked at again after a while: a client of another listener may leave, or the limit rise.
                self._left = trio.Event()
                with trio.move_on_after(_FULL_PAUSE_SECONDS):
                    await self._left.wait()
            try:
                client, address = self._sock.accept()
            except BlockingIOError:
                in_a_row = 0
                await trio.lowlevel.wait_readable(self._sock)
                continue
            except OSError as error:
                if error.errno not in _GONE:
                    log.error("cannot accept connections listener=%s error=%s", self.endpoint.name, error)
                    await trio.sleep(_REFUSED_PAUSE_SECONDS)
                continue
            try:
                self._set_options(client, address[0])
            except OSError as error:
                log.debug("connection lost peer=%s error=%s", address[0], error)
                client.close()
                continue
            self._start(client, address, nursery)
            in_a_row += 1
            now = trio.current_time()
            accept_at = self._counts.accept_at(now)
            if accept_at > now + _SHORTEST_PAUSE_SECONDS or in_a_row % _ACCEPTS_IN_A_ROW == 0:
                await trio.sleep_until(accept_at)

    def _set_options(self, client: socket.socket, peer: str) -> None:
        client.setblocking(False)
        if self._pacing is not None:
            give_back_pacing(client, peer, self._pacing)
        if self._limits.send_buffer_bytes > 0:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.send_buffer_bytes)
        if self._limits.receive_buffer_bytes > 0:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._limits.receive_buffer_bytes)

    def _start(self, client: socket.socket, address: tuple[str, int], nursery: trio.Nursery) -> None:
        host = address[0].removeprefix("::ffff:")
        if not self._counts.admit(host):
            log.warning("connection refused peer=%s reason=max.connections.per.ip reached", host)
            client.close()
            return
        connection = self._make(client, f"{host}:{address[1]}", host, self.endpoint.name)
        self.connections.add(connection)
        nursery.start_soon(self._serve, connection, host)

    async def _serve(self, connection: Connection, host: str) -> None:
        try:
            await connection.serve()
        finally:
            self.connections.discard(connection)
            self._counts.leave(host)
            self._left.set()
