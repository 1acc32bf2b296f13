"""Whether this broker could run with a changed dynamic config: asked before the change is stored (KIP-226).

`BrokerLayers` holds the three levels of a broker's configs. A change is laid over them and the whole is checked
as at start, with Kafka's extra rules for a running broker: thread pools at most double or halve at once, and
listeners stay as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ottla.config import dynamic
from ottla.config.broker_config import BrokerConfig
from ottla.config.broker_rules import check_broker_config
from ottla.config.definition import ConfigError

_THREAD_POOLS = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
)
_IDS = {"node.id": "broker.id", "broker.id": "node.id"}
_FIXED = ("listeners", "listener.security.protocol.map")


@dataclass(frozen=True)
class BrokerLayers:
    """The static configs of a broker, with the dynamic ones of all brokers and of this one as they are stored."""

    static: BrokerConfig
    stored_default: Mapping[str, str] = field(default_factory=dict)
    stored_broker: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def dynamic_default(self) -> dict[str, str]:
        """The usable configs of all brokers."""
        return dynamic.usable_configs(self.stored_default, per_broker=False)[0]

    @cached_property
    def dynamic_broker(self) -> dict[str, str]:
        """The usable configs of this broker."""
        return dynamic.usable_configs(self.stored_broker, per_broker=True)[0]

    def static_text(self, name: str) -> str | None:
        """The text of a property the broker started with; node.id and broker.id stand in for each other."""
        raw = self.static.raw
        if name not in raw and name in _IDS:
            return raw.get(_IDS[name])
        return raw.get(name)

    @cached_property
    def effective(self) -> BrokerConfig:
        """What the broker goes by."""
        if not self.stored_default and not self.stored_broker:
            return self.static
        return self.static.with_dynamic(self.stored_default, self.stored_broker)


def check_broker_change(layers: BrokerLayers, configs: Mapping[str, str], *, per_broker: bool) -> None:
    """Raise ConfigError if the broker could not go by these configs at one level (instead of those stored)."""
    dynamic.check_dynamic_configs(configs, per_broker=per_broker)
    if per_broker:
        changed = layers.static.with_dynamic(layers.dynamic_default, configs)
    else:
        changed = layers.static.with_dynamic(configs, layers.dynamic_broker)
    try:
        check_broker_config(changed)
    except ConfigError as error:
        raise ConfigError(f"requirement failed: {error}") from None
    _check_running(layers.effective, changed)


def _check_running(current: BrokerConfig, changed: BrokerConfig) -> None:
    for name in _THREAD_POOLS:
        old, new = current.get_int(name), changed.get_int(name)
        failed = (
            f"Invalid dynamic configuration: Dynamic thread count update validation failed for {name}={new}"
        )
        if new < old // 2:
            raise ConfigError(f"{failed}, value should be at least half the current value {old}")
        if new > old * 2:
            raise ConfigError(f"{failed}, value should not be greater than double the current value {old}")
    for name in _FIXED:
        if current.get(name) != changed.get(name):
            raise ConfigError(f"Invalid dynamic configuration: {name} cannot be changed while Ottla runs")
    _check_local_retention(changed, "log.local.retention.ms", "log.retention.ms")
    _check_local_retention(changed, "log.local.retention.bytes", "log.retention.bytes")


def _check_local_retention(config: BrokerConfig, local_name: str, name: str) -> None:
    local, total = config.get_int(local_name), config.get(name)
    if total is None:
        minutes = config.get("log.retention.minutes")
        hours = config.get_int("log.retention.hours")
        total = minutes * 60_000 if isinstance(minutes, int) else hours * 3_600_000
    if not isinstance(total, int) or total < 0 or local == -2:
        return
    failed = f"Invalid dynamic configuration: Invalid value {local} for configuration {local_name}"
    if local == -1:
        raise ConfigError(f"{failed}: Value must not be -1 as {name} value is set as {total}.")
    if local > total:
        raise ConfigError(f"{failed}: Value must not be more than {name} property value: {total}")
