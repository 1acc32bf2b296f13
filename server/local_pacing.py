"""No pacing between processes of one machine.

Where the system's congestion control is BBR, the kernel spreads what is sent over time by a timer, for the sake of
routers on the way. From one process to another of the same machine there is no way to spare, and the timers cost more
than all other work of sending: 0.6 s of CPU for a GB of records instead of 0.25 (ADR 12).

A connection that has begun with BBR keeps being paced whatever it is set to later, so connections begin without, as
they inherit it from the listening socket, and those of other machines get the system's choice back when they are
accepted, before anything is sent. Where the system does not pace nothing is touched.
"""

from __future__ import annotations

import socket
from typing import Final

_PACED: Final = b"bbr"  # and its later versions
_NOT_PACED: Final = b"reno"  # every Linux has it, and allows it to everybody
_NAME_BYTES: Final = 16
_OPTION: Final[int | None] = getattr(socket, "TCP_CONGESTION", None)


def leave_out_pacing(listening: socket.socket) -> bytes | None:
    """Have connections begin without pacing. Returns what is to be given back to those of other machines, or None if
    nothing was changed."""
    if _OPTION is None:
        return None
    try:
        own = listening.getsockopt(socket.IPPROTO_TCP, _OPTION, _NAME_BYTES).rstrip(b"\0")
        if not own.startswith(_PACED):
            return None
        listening.setsockopt(socket.IPPROTO_TCP, _OPTION, own)  # may we give it back?
        listening.setsockopt(socket.IPPROTO_TCP, _OPTION, _NOT_PACED)
    except OSError:  # a system that does not let us is served as it is
        return None
    return own


def give_back_pacing(client: socket.socket, peer: str, own: bytes) -> None:
    """Give a connection of another machine what the system uses for all; `peer` is its address."""
    if _OPTION is None or peer == client.getsockname()[0] or _is_loopback(peer.removeprefix("::ffff:")):
        return
    client.setsockopt(socket.IPPROTO_TCP, _OPTION, own)


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"
