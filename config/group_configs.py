"""The table of group configs (KIP-1043, KIP-932, KIP-1071), their broker synonyms and bounds.

A group overrides the broker's `group.<kind>.` config of the same name, within the broker's minimum and maximum.
"""

import re
from collections.abc import Mapping
from typing import Final

from ottla.config.broker import BROKER_CONFIGS
from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import ConfigDefinition, ConfigError, ConfigType, Value, by_name, invalid_value
from ottla.config.validators import OneOf, at_least

_DURATION: Final = r"by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d{0,9})?S)?)?"


class AutoOffsetReset:
    """earliest, latest, or a duration back from now."""

    __slots__ = ()

    def check(self, name: str, value: Value) -> None:
        """Refuse anything else."""
        if value not in ("earliest", "latest") and not (
            isinstance(value, str) and re.fullmatch(_DURATION, value, re.IGNORECASE)
        ):
            raise invalid_value(
                name,
                value,
                f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', "
                "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
            )

    def describe(self) -> str:
        """The choices."""
        return "[latest, earliest, by_duration:PnDTnHnMn.nS]"


def _as_broker(kind: str, rest: str, minimum: int) -> ConfigDefinition:
    """A group config that has the type, default and meaning of the broker's."""
    broker = BROKER_CONFIGS[f"group.{kind}.{rest}"]
    name, served = f"{kind}.{rest}", kind in ("consumer", "share")
    return ConfigDefinition(
        name, broker.type, broker.default, broker.doc, at_least(minimum), in_effect=served
    )


GROUP_CONFIGS: Final[Mapping[str, ConfigDefinition]] = by_name(
    _as_broker("consumer", "session.timeout.ms", 1),
    _as_broker("consumer", "heartbeat.interval.ms", 1),
    _as_broker("consumer", "assignment.interval.ms", 0),
    _as_broker("share", "session.timeout.ms", 1),
    _as_broker("share", "heartbeat.interval.ms", 1),
    _as_broker("share", "record.lock.duration.ms", 1000),
    _as_broker("share", "delivery.count.limit", 2),
    _as_broker("share", "partition.max.record.locks", 100),
    ConfigDefinition(
        "share.auto.offset.reset",
        ConfigType.STRING,
        "latest",
        "Where a share group starts in a partition it has not read: latest, earliest or by_duration:<duration>.",
        AutoOffsetReset(),
        in_effect=True,
    ),
    ConfigDefinition(
        "share.isolation.level",
        ConfigType.STRING,
        "read_uncommitted",
        "Whether a share group sees only records of committed transactions.",
        OneOf(("read_committed", "read_uncommitted")),
        in_effect=True,
    ),
    ConfigDefinition(
        "share.renew.acknowledge.enable",
        ConfigType.BOOLEAN,
        True,
        "Whether a consumer of a share group may renew the lock of a record.",
        in_effect=True,
    ),
    _as_broker("share", "assignment.interval.ms", 0),
    _as_broker("streams", "session.timeout.ms", 1),
    _as_broker("streams", "heartbeat.interval.ms", 1),
    _as_broker("streams", "num.standby.replicas", 0),
    _as_broker("streams", "initial.rebalance.delay.ms", 0),
    _as_broker("streams", "assignment.interval.ms", 0),
)

_BOUNDS: Final[Mapping[str, tuple[str | None, str]]] = {
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
    **{
        f"{kind}.{rest}": (f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}")
        for kind in ("consumer", "share", "streams")
        for rest in (
            "heartbeat.interval.ms",
            "session.timeout.ms",
            "assignment.interval.ms",
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
        )
        if f"{kind}.{rest}" in GROUP_CONFIGS
    },
}


def group_synonym(name: str) -> str | None:
    """The broker config that gives a group config its default."""
    synonym = f"group.{name}"
    return synonym if synonym in BROKER_CONFIGS else None


def group_values(overrides: Mapping[str, str], broker: BrokerConfig) -> dict[str, Value]:
    """What a group with these overrides goes by; raises ConfigError for a bad one."""
    values: dict[str, Value] = {}
    for name, row in GROUP_CONFIGS.items():
        synonym = group_synonym(name)
        if name in overrides:
            values[name] = row.parse(overrides[name])
        else:
            values[name] = row.default_value if synonym is None else broker.get(synonym)
    return values


def check_group_configs(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raise ConfigError, as Kafka words it, if a group may not have these overrides."""
    for name in overrides:
        if name not in GROUP_CONFIGS:
            raise ConfigError(f"Unknown group config name: {name}")
    values = group_values(overrides, broker)
    for name, (low, high) in _BOUNDS.items():
        value = values[name]
        assert isinstance(value, int)
        if low is not None and value < broker.get_int(low):
            raise ConfigError(f"{name} must be greater than or equal to {low}")
        if value > broker.get_int(high):
            raise ConfigError(f"{name} must be less than or equal to {high}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms, heartbeat_ms = values[session], values[heartbeat]
        assert isinstance(session_ms, int)
        assert isinstance(heartbeat_ms, int)
        if session_ms <= heartbeat_ms:
            raise ConfigError(f"{session} must be greater than {heartbeat}")
