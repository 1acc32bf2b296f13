"""The settings of consumer groups, read from the broker's configuration and the overrides of each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import ConfigError
from ottla.config.group_configs import group_values
from ottla.group_coordinator.consumer.assignors import ASSIGNORS
from ottla.group_coordinator.consumer.settings import GroupTimes, MigrationPolicy

_CLASS_NAMES: Final[Mapping[str, str]] = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


class ConfiguredConsumerGroups:
    """`config` is asked at each use, because some of it changes while the broker runs; so are overrides."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        overrides: Callable[[str], Mapping[str, str]] = lambda group_id: {},
    ) -> None:
        self._config = config
        self._overrides = overrides
        self._times: tuple[BrokerConfig, GroupTimes] | None = None
        self.assignors: Final = configured_assignors(config())

    @property
    def max_size(self) -> int:
        return self._config().get_int("group.consumer.max.size")

    @property
    def classic_max_size(self) -> int:
        return self._config().get_int("group.max.size")

    @property
    def classic_session_timeouts_ms(self) -> tuple[int, int]:
        config = self._config()
        return config.get_int("group.min.session.timeout.ms"), config.get_int("group.max.session.timeout.ms")

    @property
    def migration_policy(self) -> MigrationPolicy:
        policy = str(self._config().get("group.consumer.migration.policy")).lower()
        return cast(MigrationPolicy, policy)

    @property
    def regex_refresh_interval_ms(self) -> int:
        return self._config().get_int("group.consumer.regex.refresh.interval.ms")

    def times_of(self, group_id: str) -> GroupTimes:
        """The broker's times, kept for as long as its configuration is the same, unless the group has its own."""
        config = self._config()
        overrides = self._overrides(group_id)
        if overrides:
            return _times(overrides, config)
        if self._times is None or self._times[0] is not config:
            self._times = config, _times({}, config)
        return self._times[1]


def configured_assignors(config: BrokerConfig) -> tuple[str, ...]:
    """`group.consumer.assignors` by their short names; ConfigError for one that Ottla does not have."""
    names = []
    for given in cast(tuple[str, ...], config.get("group.consumer.assignors")):
        name = _CLASS_NAMES.get(given, given)
        if name not in ASSIGNORS:
            known = ", ".join(ASSIGNORS)
            raise ConfigError(f"group.consumer.assignors: there is no assignor {given!r}, only {known}")
        names.append(name)
    return tuple(names)


def _times(overrides: Mapping[str, str], config: BrokerConfig) -> GroupTimes:
    values = group_values(overrides, config)

    def value(name: str) -> int:
        number = values[f"consumer.{name}"]
        assert isinstance(number, int)
        return number

    return GroupTimes(
        value("session.timeout.ms"), value("heartbeat.interval.ms"), value("assignment.interval.ms")
    )
