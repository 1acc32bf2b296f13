"""Accepting connections: what the system refuses, or a client spoils, ends neither the listener nor the broker."""

import errno
import socket

import pytest
import trio
import trio.testing

from ottla.config.broker_config import BrokerConfig
from ottla.config.listeners import Endpoint
from ottla.server.connection import Connection
from ottla.server.connection_limits import ConnectionLimits
from ottla.server.limits import Limits
from ottla.server.listener import Listener, bind


class FlakySocket(socket.socket):
    """A listening socket that fails a few times first."""

    failures: list[OSError | None]

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        if self.failures:
            failure = self.failures.pop(0)
            if failure is not None:
                raise failure
            dead = socket.socket()
            dead.close()
            return dead, ("127.0.0.1", 1)
        return super().accept()


class Served:
    """Stands in for a connection and counts that it was served."""

    def __init__(self) -> None:
        self.count = 0

    async def serve(self) -> None:
        self.count += 1


@pytest.mark.parametrize(
    "failures",
    [
        [OSError(errno.EMFILE, "Too many open files")] * 3,
        [OSError(errno.ECONNABORTED, "Software caused connection abort")],
        [OSError(errno.EINVAL, "Invalid argument")],
        [None],
    ],
    ids=["no descriptors left", "client gave up", "something else", "dead before it was set up"],
)
async def test_accepting_goes_on(
    failures: list[OSError | None], autojump_clock: trio.testing.MockClock
) -> None:
    """The next client is served."""
    endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)
    limits = Limits.from_config(BrokerConfig.load({}))
    served = Served()

    def make(sock: socket.socket, peer: str, host: str, listener: str) -> Connection:
        sock.close()
        return served  # type: ignore[return-value]

    with FlakySocket(fileno=bind(endpoint).detach()) as sock:
        sock.failures = list(failures)
        listener = Listener(endpoint, sock, limits, ConnectionLimits(limits), make)
        listener.listen()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.accept_until_stopped, nursery)
            with socket.create_connection(sock.getsockname()):
                await trio.sleep(10)
            listener.stop_accepting()
    assert served.count == 1


async def test_connections_begin_with_their_options() -> None:
    """Small answers are sent at once, and a peer that is gone is found out."""
    endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)
    limits = Limits.from_config(BrokerConfig.load({}))
    served, options = Served(), []

    def make(sock: socket.socket, peer: str, host: str, listener: str) -> Connection:
        options.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        options.append(sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        options.append(sock.getblocking())
        sock.close()
        return served  # type: ignore[return-value]

    with bind(endpoint) as sock:
        listener = Listener(endpoint, sock, limits, ConnectionLimits(limits), make)
        listener.listen()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.accept_until_stopped, nursery)
            with socket.create_connection(sock.getsockname()):
                while not served.count:
                    await trio.sleep(0)
            listener.stop_accepting()
    assert options == [1, 1, False]


async def test_clients_that_come_at_once_are_accepted_in_one_go(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The backlog is emptied before anybody is served, some at a time: who finds it full waits for a second."""
    endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)
    limits = Limits.from_config(BrokerConfig.load({}))
    events: list[str] = []

    class Noted:
        async def serve(self) -> None:
            events.append("served")

    def make(sock: socket.socket, peer: str, host: str, listener: str) -> Connection:
        events.append("accepted")
        sock.close()
        return Noted()  # type: ignore[return-value]

    with bind(endpoint) as sock:
        listener = Listener(endpoint, sock, limits, ConnectionLimits(limits), make)
        listener.listen()
        clients = [socket.create_connection(sock.getsockname()) for _ in range(8)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.accept_until_stopped, nursery)
            await trio.sleep(1)
            listener.stop_accepting()
        for client in clients:
            client.close()
    assert events == ["accepted"] * 8 + ["served"] * 8


class BacklogNoted(socket.socket):
    """Remembers how many may wait to be accepted."""

    backlog = 0

    def listen(self, backlog: int = 0) -> None:
        self.backlog = backlog
        super().listen(backlog)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [({}, max(socket.SOMAXCONN, 50)), ({"socket.listen.backlog.size": "50"}, 50)],
    ids=["not configured", "configured"],
)
def test_as_many_may_wait_as_is_configured_or_else_as_the_system_allows(
    properties: dict[str, str], expected: int
) -> None:
    """Who finds no room tries again a second later, so a small backlog must be somebody's wish."""
    endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)
    limits = Limits.from_config(BrokerConfig.load(properties))
    with BacklogNoted(fileno=bind(endpoint).detach()) as sock:
        Listener(endpoint, sock, limits, ConnectionLimits(limits), make=None).listen()  # type: ignore[arg-type]
        assert sock.backlog == expected
