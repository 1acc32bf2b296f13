"""What a handler knows beside the request itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.server.broker import Broker


class RequestContext:
    """The broker, the connection's facts, and the header of the request being answered."""

    __slots__ = (
        "api_version",
        "broker",
        "client_host",
        "client_id",
        "correlation_id",
        "has_many_elements",
        "listener",
        "on_close",
    )

    def __init__(self, broker: Broker, listener: str, client_host: str) -> None:
        self.broker = broker
        self.listener = listener
        self.client_host = client_host
        self.client_id: str | None = None
        self.api_version = 0
        self.correlation_id = 0
        # The request has, or what a handler answers: too many for one turn of the loop.
        self.has_many_elements = False
        self.on_close: dict[Hashable, Callable[[], None]] = {}  # done when the connection has ended
