"""Checking a topic's configs, and making its TopicConfig of them and the broker's.

The words of the errors are Kafka's. Checking is strict, for what a client asks; making a TopicConfig is
lenient, for what is stored: a stored config that is unknown or broken is left out with a warning, so that one
bad record does not keep a broker from starting.
"""

import logging
from collections.abc import Mapping

from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import ConfigError, Value
from ottla.config.topic_config import TopicConfig, topic_config_from
from ottla.config.topics import TOPIC_CONFIGS, TOPIC_SYNONYMS
from ottla.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("ottla.config")


def broker_topic_defaults(config: BrokerConfig) -> dict[str, Value]:
    """What a topic without overrides gets from this broker, by topic config name."""
    defaults: dict[str, Value] = {}
    for name, synonyms in TOPIC_SYNONYMS.items():
        for synonym in synonyms:
            value = config.get(synonym.name)
            if value is not None:
                if synonym.ms_per_unit != 1 and isinstance(value, int):
                    value = value * synonym.ms_per_unit
                defaults[name] = value
                break
    retention_ms = defaults["retention.ms"]
    if isinstance(retention_ms, int) and retention_ms < 0:
        defaults["retention.ms"] = -1
    return defaults


def validate_topic_configs(
    overrides: Mapping[str, str | None],
    broker: BrokerConfig | None = None,
    existing: Mapping[str, str] | None = None,
) -> None:
    """Raise KafkaError(INVALID_CONFIG) if a topic may not have these overrides.

    They are checked together with the broker's own values, and against those the topic had before.
    """
    try:
        _validate(overrides, broker, existing or {})
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _validate(
    overrides: Mapping[str, str | None], broker: BrokerConfig | None, existing: Mapping[str, str]
) -> None:
    nulls = [name for name, text in overrides.items() if text is None]
    if nulls:
        raise ConfigError(f"Null value not supported for topic configs: {','.join(nulls)}")
    for name in overrides:
        if name not in TOPIC_CONFIGS:
            raise ConfigError(f"Unknown topic config name: {name}")
    values: dict[str, Value] = {name: row.default_value for name, row in TOPIC_CONFIGS.items()}
    if broker is not None:
        values |= broker_topic_defaults(broker)
    for name, row in TOPIC_CONFIGS.items():
        if name in overrides:
            values[name] = row.parse(overrides[name])
    config = topic_config_from(values)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({config.min_compaction_lag_ms}) > "
            f"max.compaction.lag.ms ({config.max_compaction_lag_ms})"
        )
    if config.remote_storage_enable:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote "
            "log storage."
        )
    was_remote = existing.get("remote.storage.enable", "false").lower() == "true"
    if was_remote and not config.remote_log_delete_on_disable:
        raise ConfigError(
            "It is invalid to disable remote storage without deleting remote data. If you want to keep the "
            "remote data and turn to read only, please set "
            "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote "
            "storage and delete all remote data, please set "
            "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
        )


def topic_values(broker: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Value]:
    """Every topic config's value for stored overrides on a broker."""
    values = {name: row.default_value for name, row in TOPIC_CONFIGS.items()}
    return _overlaid({**values, **broker_topic_defaults(broker)}, overrides)


def topic_config_over(defaults: Mapping[str, Value], overrides: Mapping[str, str]) -> TopicConfig:
    """The TopicConfig of stored overrides over the broker's defaults (see broker_topic_defaults)."""
    return topic_config_from(_overlaid(defaults, overrides))


def _overlaid(defaults: Mapping[str, Value], overrides: Mapping[str, str]) -> dict[str, Value]:
    values = dict(defaults)
    for name, text in overrides.items():
        definition = TOPIC_CONFIGS.get(name)
        try:
            if definition is None:
                raise ConfigError(f"Unknown topic config name: {name}")
            values[name] = definition.parse(text)
        except ConfigError as error:
            log.warning("ignoring stored topic config: %s", error)
    return values


def effective_topic_config(
    overrides: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
    dynamic_default: Mapping[str, str],
    static: BrokerConfig,
) -> TopicConfig:
    """What a topic with these overrides goes by on a broker with these static and dynamic configs."""
    broker = (
        static.with_dynamic(dynamic_default, dynamic_broker) if dynamic_broker or dynamic_default else static
    )
    return topic_config_over(broker_topic_defaults(broker), overrides)
