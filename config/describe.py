"""What DescribeConfigs tells of a resource: each config's value, where it comes from, and what it hides (KIP-226).

The synonyms of a config are all the places that could set it, the one in force first: this broker's dynamic
config, that of all brokers, the properties the broker started with, Kafka's default. One oddity is Kafka's and
kept: what comes before the first synonym of the very name is dropped, so retention.ms of a broker that was
given log.retention.hours alone has no synonyms and claims to be a default.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import IntEnum

from ottla.config.broker import BROKER_CONFIGS
from ottla.config.broker_change import BrokerLayers
from ottla.config.client_metrics import CLIENT_METRICS_CONFIGS
from ottla.config.definition import ConfigDefinition, ConfigType, to_text
from ottla.config.dynamic import DYNAMIC_CONFIGS, DYNAMIC_ONLY_CONFIGS, synonyms_of
from ottla.config.group_configs import GROUP_CONFIGS, group_synonym, group_values
from ottla.config.topic_rules import topic_values
from ottla.config.topics import TOPIC_CONFIGS, TOPIC_SYNONYMS
from ottla.wire.dataclass import dataclass


class ConfigSource(IntEnum):
    """Where a value comes from, numbered as on the wire."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class Synonym:
    """One place that sets a config; the value of a sensitive one is None."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config of a resource; type 0 is unknown."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    is_sensitive: bool
    type: int
    documentation: str | None
    synonyms: tuple[Synonym, ...]


def describe_topic(
    overrides: Mapping[str, str], layers: BrokerLayers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The configs of a topic; of those named, if any are."""
    values = topic_values(layers.effective, overrides)
    entries = []
    for definition in _wanted(TOPIC_CONFIGS.values(), names):
        name = definition.name
        if definition.internal and name not in overrides:
            continue
        text = to_text(values[name])
        synonyms = _broker_synonyms(TOPIC_SYNONYMS[name][0].name, layers) if name in TOPIC_SYNONYMS else ()
        if name in overrides:
            synonyms = (Synonym(name, text, ConfigSource.TOPIC), *synonyms)
        entries.append(_entry(definition, text, synonyms))
    return entries


def describe_broker(layers: BrokerLayers, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The configs of this broker: all but internal ones, and whatever else it was given."""
    effective = layers.effective
    explicit = {**layers.static.raw, **layers.dynamic_default, **layers.dynamic_broker}
    entries = []
    for definition in _wanted(BROKER_CONFIGS.values(), names):
        if not definition.internal or definition.name in explicit:
            text = to_text(effective.get(definition.name))
            entries.append(
                _broker_entry(definition.name, definition, text, _broker_synonyms(definition.name, layers))
            )
    for name, text in explicit.items():
        if name not in BROKER_CONFIGS and (not names or name in names):
            base = DYNAMIC_ONLY_CONFIGS.get(name) or BROKER_CONFIGS.get(
                synonyms_of(name, match_listener=True)[-1]
            )
            entries.append(_broker_entry(name, base, text, _broker_synonyms(name, layers)))
    return entries


def describe_broker_defaults(layers: BrokerLayers, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The dynamic configs of all brokers, which is what the empty broker name stands for."""
    entries = []
    for name, text in layers.dynamic_default.items():
        if not names or name in names:
            definition = BROKER_CONFIGS.get(name) or DYNAMIC_ONLY_CONFIGS.get(name)
            synonyms = tuple(
                each
                for each in _broker_synonyms(name, layers)
                if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
            )
            entries.append(_broker_entry(name, definition, text, synonyms))
    return entries


def describe_group(
    overrides: Mapping[str, str], layers: BrokerLayers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The configs of a group, whether there is one or not."""
    values = group_values(overrides, layers.effective)
    entries = []
    for definition in _wanted(GROUP_CONFIGS.values(), names):
        name = definition.name
        text = to_text(values[name])
        broker_name = group_synonym(name)
        if broker_name is not None:
            synonyms = _broker_synonyms(broker_name, layers)
        else:
            synonyms = (Synonym(name, to_text(definition.default_value), ConfigSource.DEFAULT),)
        if name in overrides:
            synonyms = (Synonym(name, text, ConfigSource.GROUP), *synonyms)
        entries.append(_entry(definition, text, synonyms))
    return entries


def describe_client_metrics(
    overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The configs of a client metrics subscription, whether there is one or not."""
    entries = []
    for definition in _wanted(CLIENT_METRICS_CONFIGS.values(), names):
        name = definition.name
        value = definition.parse(overrides[name]) if name in overrides else definition.default_value
        text = to_text(value)
        synonyms = (Synonym(name, text, ConfigSource.CLIENT_METRICS),) if name in overrides else ()
        entries.append(_entry(definition, text, synonyms))
    return entries


def describe_loggers(levels: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The levels of the broker's loggers (KIP-412)."""
    return [
        ConfigEntry(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER, False, False, 0, None, ())
        for name, level in levels.items()
        if not names or name in names
    ]


def _wanted(rows: Iterable[ConfigDefinition], names: Collection[str] | None) -> list[ConfigDefinition]:
    return [row for row in rows if not names or row.name in names]


def _entry(definition: ConfigDefinition, text: str | None, synonyms: tuple[Synonym, ...]) -> ConfigEntry:
    return ConfigEntry(
        definition.name,
        text,
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        False,
        False,
        definition.type,
        definition.doc,
        synonyms,
    )


def _broker_entry(
    name: str, definition: ConfigDefinition | None, text: str | None, synonyms: tuple[Synonym, ...]
) -> ConfigEntry:
    """What the table does not know might be a secret, so it is not shown."""
    is_sensitive = definition is None or definition.type is ConfigType.PASSWORD
    return ConfigEntry(
        name,
        None if is_sensitive else text,
        synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        name not in DYNAMIC_CONFIGS,
        is_sensitive,
        0 if definition is None else definition.type,
        definition.doc if definition is not None and definition.name == name else None,
        synonyms,
    )


def _broker_synonyms(name: str, layers: BrokerLayers) -> tuple[Synonym, ...]:
    names = synonyms_of(name, match_listener=True)
    definition = BROKER_CONFIGS.get(names[-1]) or DYNAMIC_ONLY_CONFIGS.get(name)
    is_sensitive = definition is None or definition.is_sensitive
    levels: tuple[tuple[ConfigSource, Callable[[str], str | None]], ...] = (
        (ConfigSource.DYNAMIC_BROKER, layers.dynamic_broker.get),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, layers.dynamic_default.get),
        (ConfigSource.STATIC_BROKER, layers.static_text),
        (ConfigSource.DEFAULT, _default_text),
    )
    found = [
        Synonym(each, None if is_sensitive else text, source)
        for source, text_of in levels
        for each in names
        if (text := text_of(each)) is not None
    ]
    first = next((index for index, each in enumerate(found) if each.name == name), len(found))
    return tuple(found[first:])


def _default_text(name: str) -> str | None:
    definition = BROKER_CONFIGS.get(name)
    return None if definition is None else to_text(definition.default_value)
