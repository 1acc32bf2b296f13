"""Counting connections against limits, which may change while the broker runs."""

from ottla.config.broker_config import BrokerConfig
from ottla.server.connection_limits import ConnectionLimits
from ottla.server.limits import Limits


def limits(**settings: str) -> Limits:
    """Limits of a broker with these settings; `_` in a name stands for a dot."""
    return Limits.from_config(
        BrokerConfig.load({name.replace("_", "."): text for name, text in settings.items()})
    )


def test_total() -> None:
    """The broker is full at max.connections, until the limit is raised."""
    counts = ConnectionLimits(limits(max_connections="2"))
    assert counts.admit("a")
    assert counts.admit("b")
    assert counts.is_full()
    counts.update(limits(max_connections="3"))
    assert not counts.is_full()
    counts.update(limits(max_connections="1"))
    counts.leave("a")
    assert counts.is_full()


def test_per_address() -> None:
    """An address has its own limit, or the one that an override gives it."""
    counts = ConnectionLimits(limits(max_connections_per_ip="1", max_connections_per_ip_overrides="b:2"))
    assert [counts.admit(address) for address in "aabbb"] == [True, False, True, True, False]
    counts.leave("a")
    assert counts.admit("a")


def test_rate() -> None:
    """Connections are spread over the second; a rate of 0 lets one a second in rather than none."""
    counts = ConnectionLimits(limits(max_connection_creation_rate="4"))
    assert [counts.accept_at(10.0) for _ in range(3)] == [10.0, 10.25, 10.5]
    assert ConnectionLimits(limits(max_connection_creation_rate="0")).accept_at(5.0) == 5.0
