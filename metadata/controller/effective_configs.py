"""Every config of a topic with the value in force and where it comes from, as CreateTopics answers it.

A value comes from the topic itself, or from one of the broker configs behind it (the dynamic configs of this
broker, the dynamic ones of all brokers, the static ones, each under any of its names), or is the default.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import to_text
from ottla.config.topic_rules import broker_topic_defaults
from ottla.config.topics import TOPIC_CONFIGS, TOPIC_SYNONYMS

DYNAMIC_TOPIC_CONFIG = 1
DYNAMIC_BROKER_CONFIG = 2
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5


class EffectiveConfig(NamedTuple):
    """One config in force."""

    name: str
    value: str | None
    source: int
    is_sensitive: bool


def effective_topic_configs(
    topic: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
    dynamic_default: Mapping[str, str],
    static: BrokerConfig,
) -> list[EffectiveConfig]:
    """All topic configs by name."""
    broker = (
        static.with_dynamic(dynamic_default, dynamic_broker) if dynamic_broker or dynamic_default else static
    )
    inherited = broker_topic_defaults(broker)
    levels = (
        (DYNAMIC_BROKER_CONFIG, dynamic_broker),
        (DYNAMIC_DEFAULT_BROKER_CONFIG, dynamic_default),
        (STATIC_BROKER_CONFIG, static.raw),
    )
    entries = []
    for name in sorted(TOPIC_CONFIGS):
        definition = TOPIC_CONFIGS[name]
        if definition.internal and name not in topic:
            continue
        if name in topic:
            entry = EffectiveConfig(name, topic[name], DYNAMIC_TOPIC_CONFIG, definition.is_sensitive)
        else:
            synonyms = TOPIC_SYNONYMS.get(name, ())
            source = next(
                (level for level, values in levels if any(synonym.name in values for synonym in synonyms)),
                DEFAULT_CONFIG,
            )
            value = inherited.get(name, definition.default_value)
            entry = EffectiveConfig(name, to_text(value), source, definition.is_sensitive)
        entries.append(entry)
    return entries
