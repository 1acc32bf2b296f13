"""Who may still connect: limits in total, per address and per second. Pure counting."""

from collections import Counter

from ottla.server.limits import Limits


class ConnectionLimits:
    """Counts open connections."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._per_address: Counter[str] = Counter()
        self._next_slot = 0.0

    def update(self, limits: Limits) -> None:
        """Go by other limits from now on; connections that are open stay."""
        self._limits = limits

    @property
    def open_connections(self) -> int:
        return self._per_address.total()

    def is_full(self) -> bool:
        """Whether accepting must wait for somebody to leave (max.connections)."""
        return self.open_connections >= self._limits.max_connections

    def admit(self, address: str) -> bool:
        """Count a new connection in, unless its address has too many (max.connections.per.ip)."""
        limits = self._limits
        allowed = limits.max_connections_per_ip_overrides.get(address, limits.max_connections_per_ip)
        if self._per_address[address] >= allowed:
            return False
        self._per_address[address] += 1
        return True

    def leave(self, address: str) -> None:
        self._per_address[address] -= 1
        if self._per_address[address] <= 0:
            del self._per_address[address]

    def accept_at(self, now: float) -> float:
        """When the next connection may be accepted (max.connection.creation.rate)."""
        interval = 1 / max(1, self._limits.max_connection_rate)
        slot = max(self._next_slot, now)
        self._next_slot = slot + interval
        return slot
