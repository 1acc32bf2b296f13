"""Connections within the machine are not paced; all others get what the system uses."""

import errno
import socket

import pytest

from ottla.server.local_pacing import give_back_pacing, leave_out_pacing

OPTION = getattr(socket, "TCP_CONGESTION", 13)


class FakeSocket(socket.socket):
    """Knows the algorithms it is asked about, on a system that allows some of them."""

    algorithm = b"cubic"
    allowed = (b"reno", b"cubic", b"bbr")
    own_host = "10.0.0.1"

    def getsockopt(self, level: int, option: int, size: int = 0) -> bytes:  # type: ignore[override]
        assert (level, option) == (socket.IPPROTO_TCP, OPTION)
        return self.algorithm.ljust(size, b"\0")

    def setsockopt(self, level: int, option: int, value: bytes) -> None:  # type: ignore[override]
        assert (level, option) == (socket.IPPROTO_TCP, OPTION)
        if value not in self.allowed:
            raise OSError(errno.EPERM, "Operation not permitted")
        self.algorithm = value

    def getsockname(self) -> tuple[str, int]:
        return self.own_host, 9092


@pytest.fixture(autouse=True)
def _linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.server.local_pacing._OPTION", OPTION)


@pytest.mark.parametrize("algorithm", [b"cubic", b"reno", b"dctcp"])
def test_what_does_not_pace_is_left_alone(algorithm: bytes) -> None:
    """Only BBR is replaced."""
    with FakeSocket() as listening:
        listening.algorithm = algorithm
        assert leave_out_pacing(listening) is None
        assert listening.algorithm == algorithm


@pytest.mark.parametrize("allowed", [(b"bbr",), (b"reno",), ()])
def test_a_system_that_does_not_let_us_is_left_alone(allowed: tuple[bytes, ...]) -> None:
    """Where it could not be given back, or not be replaced, connections are paced."""
    with FakeSocket() as listening:
        listening.algorithm, listening.allowed = b"bbr", allowed
        assert leave_out_pacing(listening) is None
        assert listening.algorithm == b"bbr"


@pytest.mark.parametrize(
    ("peer", "algorithm"),
    [
        ("127.0.0.1", b"reno"),
        ("127.8.9.1", b"reno"),
        ("::1", b"reno"),
        ("::ffff:127.0.0.1", b"reno"),
        ("10.0.0.1", b"reno"),  # the machine's own address
        ("10.0.0.2", b"bbr"),
        ("2001:db8::1", b"bbr"),
        ("::ffff:10.0.0.2", b"bbr"),
    ],
)
def test_only_clients_of_other_machines_are_paced(peer: str, algorithm: bytes) -> None:
    """What the listening socket had is given back to them."""
    with FakeSocket() as listening, FakeSocket() as client:
        listening.algorithm = b"bbr"
        own = leave_out_pacing(listening)
        assert own == b"bbr"
        client.algorithm = listening.algorithm  # as the system has it inherited
        give_back_pacing(client, peer, own)
        assert client.algorithm == algorithm


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="this system has no such option")
def test_a_local_connection_begins_without_pacing() -> None:
    """On this system, whatever it uses."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        own = leave_out_pacing(listening)
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as client:
            if own is not None:
                give_back_pacing(client, "127.0.0.1", own)
            used = client.getsockopt(socket.IPPROTO_TCP, OPTION, 16)
            assert not used.startswith(b"bbr")
