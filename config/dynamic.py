"""Broker configs that change while the broker runs (KIP-226): what may change where, and what overrides what.

A dynamic config is stored for one broker or, under the empty name, for all. Some configs say the same in
other units; setting one of them at a higher level hides all of its kin below, so that a dynamic
log.retention.ms wins over a static log.retention.minutes.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.config.broker import BROKER_CONFIGS
from ottla.config.definition import ConfigDefinition, ConfigError, ConfigType, Importance, UpdateMode, by_name
from ottla.config.validators import at_least

_KIN: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_KIN_OF: Final = {name: kin for kin in _KIN for name in kin} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}

LISTENER_MECHANISM_CONFIGS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_CLUSTER_LEVEL_LISTENER_CONFIGS: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
_LISTENER_CONFIG: Final = r"listener\.name\.[^.]*\.(.*)"

_SECURITY_CONFIGS: Final = frozenset(
    {
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
    }
)


def _rate(name: str, doc: str) -> ConfigDefinition:
    return ConfigDefinition(
        name,
        ConfigType.LONG,
        (1 << 63) - 1,
        doc,
        at_least(0),
        Importance.MEDIUM,
        mode=UpdateMode.CLUSTER_WIDE,
    )


DYNAMIC_ONLY_CONFIGS: Final[Mapping[str, ConfigDefinition]] = by_name(
    _rate("leader.replication.throttled.rate", "Bytes a second that throttled leaders send to followers."),
    _rate("follower.replication.throttled.rate", "Bytes a second that throttled followers fetch."),
    _rate(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "Bytes a second for moving replicas between data directories.",
    ),
)

DYNAMIC_CONFIGS: Final[Mapping[str, ConfigDefinition]] = {
    **{name: row for name, row in BROKER_CONFIGS.items() if row.mode is not UpdateMode.READ_ONLY},
    **DYNAMIC_ONLY_CONFIGS,
}


def synonyms_of(name: str, *, match_listener: bool) -> tuple[str, ...]:
    """The names under which a broker config may be set, the strongest first."""
    if name in _KIN_OF:
        return _KIN_OF[name]
    found = re.fullmatch(_LISTENER_CONFIG, name) if match_listener else None
    if found is None:
        return (name,)
    base = found.group(1)
    return (name, next((each for each in LISTENER_MECHANISM_CONFIGS if base.endswith(each)), base))


def override(properties: dict[str, str], changes: Mapping[str, str]) -> None:
    """Put the changes over the properties, hiding what says the same in another unit."""
    for name, text in changes.items():
        for synonym in synonyms_of(name, match_listener=False):
            properties.pop(synonym, None)
        properties[name] = text


def check_dynamic_configs(configs: Mapping[str, str], *, per_broker: bool) -> None:
    """Raise ConfigError, as Kafka words it, for dynamic configs that may not be set at this level."""
    _refuse(_not_dynamic(configs), "Cannot update these configs dynamically")
    _refuse(
        _SECURITY_CONFIGS & configs.keys(),
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    for name, text in configs.items():
        _check_value(name, text)
    if not per_broker:
        _refuse(
            _per_broker(configs),
            "Cannot update these configs at default cluster level, broker id must be specified",
        )


def usable_configs(configs: Mapping[str, str], *, per_broker: bool) -> tuple[dict[str, str], list[str]]:
    """The stored configs that may be used, and why the others may not."""
    usable = {}
    problems = []
    for name, text in configs.items():
        try:
            check_dynamic_configs({name: text}, per_broker=per_broker)
        except ConfigError as error:
            problems.append(str(error))
        else:
            usable[name] = text
    return usable, problems


def _refuse(names: Iterable[str], why: str) -> None:
    shown = ", ".join(sorted(names))
    if shown:
        raise ConfigError(f"{why}: [{shown}]")


def _not_dynamic(configs: Iterable[str]) -> set[str]:
    return {name for name in configs if name in BROKER_CONFIGS and name not in DYNAMIC_CONFIGS}


def _per_broker(configs: Iterable[str]) -> set[str]:
    found = set()
    for name in configs:
        listener = re.fullmatch(_LISTENER_CONFIG, name)
        if listener is not None:
            if listener.group(1) not in _CLUSTER_LEVEL_LISTENER_CONFIGS:
                found.add(name)
        elif name in DYNAMIC_CONFIGS and DYNAMIC_CONFIGS[name].mode is UpdateMode.PER_BROKER:
            found.add(name)
    return found


def _check_value(name: str, text: str) -> None:
    """Unknown names pass, as they do in Kafka, which keeps them for plugins."""
    listener = re.fullmatch(_LISTENER_CONFIG, name)
    definition = DYNAMIC_CONFIGS.get(listener.group(1) if listener else name)
    if definition is not None:
        definition.parse(text)
