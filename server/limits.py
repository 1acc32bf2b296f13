"""Broker settings that the hot path reads, taken out of the configuration once."""

from __future__ import annotations

import socket

from ottla.config.broker_config import BrokerConfig
from ottla.wire.dataclass import dataclass

_DEFAULT_QUEUED_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes, counts and times that bound what clients can make the broker do."""

    max_frame_bytes: int
    queued_bytes: int
    fetch_max_bytes: int
    idle_seconds: float
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: dict[str, int]
    max_connection_rate: int
    backlog: int
    send_buffer_bytes: int
    receive_buffer_bytes: int

    @classmethod
    def from_config(cls, config: BrokerConfig) -> Limits:
        queued_bytes = config.get_int("queued.max.request.bytes")
        return cls(
            max_frame_bytes=config.get_int("socket.request.max.bytes"),
            queued_bytes=queued_bytes if queued_bytes > 0 else _DEFAULT_QUEUED_BYTES,
            fetch_max_bytes=config.get_int("fetch.max.bytes"),
            idle_seconds=config.get_int("connections.max.idle.ms") / 1000,
            max_connections=config.get_int("max.connections"),
            max_connections_per_ip=config.get_int("max.connections.per.ip"),
            max_connections_per_ip_overrides=_overrides(config.get_str("max.connections.per.ip.overrides")),
            max_connection_rate=config.get_int("max.connection.creation.rate"),
            backlog=_backlog(config),
            send_buffer_bytes=config.get_int("socket.send.buffer.bytes"),
            receive_buffer_bytes=config.get_int("socket.receive.buffer.bytes"),
        )


def _backlog(config: BrokerConfig) -> int:
    """What is configured, else as many as the system allows: with Kafka's default of 50, most of a thousand clients
    that come at once find no room, and their systems try again a second later, then two, then four."""
    configured = config.get_int("socket.listen.backlog.size")
    return configured if config.is_set("socket.listen.backlog.size") else max(socket.SOMAXCONN, configured)


def _overrides(text: str) -> dict[str, int]:
    """`host:count` pairs, the host perhaps an IPv6 address."""
    pairs = (entry.strip().rpartition(":") for entry in text.split(",") if entry.strip())
    return {host.strip("[]"): int(count) for host, _, count in pairs}
