"""The configs that share groups go by, from the broker's configuration and the overrides of each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import Value
from ottla.config.group_configs import group_values


class ShareGroupValues(NamedTuple):
    """What a group may override."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    record_lock_duration_ms: int
    delivery_count_limit: int
    max_record_locks: int
    auto_offset_reset: str
    read_committed: bool
    renew_enabled: bool


class ShareGroupSettings:
    """`config` is asked at each use, because some of it changes while the broker runs; so are overrides."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        overrides: Callable[[str], Mapping[str, str]] = lambda group_id: {},
    ) -> None:
        self._config = config
        self._overrides = overrides
        self._defaults: tuple[BrokerConfig, ShareGroupValues] | None = None

    @property
    def max_size(self) -> int:
        return self._config().get_int("group.share.max.size")

    @property
    def initialize_retry_interval_ms(self) -> int:
        return self._config().get_int("group.share.initialize.retry.interval.ms")

    def of_group(self, group_id: str) -> ShareGroupValues:
        """The broker's values, kept for as long as its configuration is the same, unless the group has its own."""
        config = self._config()
        overrides = self._overrides(group_id)
        if overrides:
            return _values(group_values(overrides, config))
        if self._defaults is None or self._defaults[0] is not config:
            self._defaults = config, _values(group_values({}, config))
        return self._defaults[1]


def _values(values: Mapping[str, Value]) -> ShareGroupValues:
    def number(name: str) -> int:
        value = values[f"share.{name}"]
        assert isinstance(value, int)
        return value

    return ShareGroupValues(
        session_timeout_ms=number("session.timeout.ms"),
        heartbeat_interval_ms=number("heartbeat.interval.ms"),
        assignment_interval_ms=number("assignment.interval.ms"),
        record_lock_duration_ms=number("record.lock.duration.ms"),
        delivery_count_limit=number("delivery.count.limit"),
        max_record_locks=number("partition.max.record.locks"),
        auto_offset_reset=str(values["share.auto.offset.reset"]).lower(),
        read_committed=values["share.isolation.level"] == "read_committed",
        renew_enabled=bool(values["share.renew.acknowledge.enable"]),
    )
