"""The configs of a client metrics subscription (KIP-714)."""

import re
from collections.abc import Mapping
from typing import Final

from ottla.config.definition import ConfigDefinition, ConfigError, ConfigType, by_name
from ottla.config.validators import ValidList
from ottla.wire.errors import ErrorCode, KafkaError

CLIENT_METRICS_CONFIGS: Final[Mapping[str, ConfigDefinition]] = by_name(
    ConfigDefinition(
        "metrics",
        ConfigType.LIST,
        (),
        "Prefixes of the metrics that clients push, or `*` for all.",
        ValidList(),
    ),
    ConfigDefinition("interval.ms", ConfigType.INT, 300_000, "How often clients push their metrics."),
    ConfigDefinition(
        "match", ConfigType.LIST, (), "Which clients the subscription is for, as key=pattern.", ValidList()
    ),
)

_MATCH_KEYS: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def check_client_metrics_configs(subscription: str, configs: Mapping[str, str]) -> None:
    """Raise KafkaError, as Kafka words it, if a subscription may not have these configs."""
    if not subscription:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for name in configs:
        if name not in CLIENT_METRICS_CONFIGS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    try:
        values = {name: CLIENT_METRICS_CONFIGS[name].parse(text) for name, text in configs.items()}
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    interval_ms = values.get("interval.ms", 300_000)
    if not isinstance(interval_ms, int) or not 100 <= interval_ms <= 3_600_000:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        )
    patterns = values.get("match", ())
    for pattern in patterns if isinstance(patterns, tuple) else ():
        if not _is_match_pattern(pattern):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")


def _is_match_pattern(pattern: str) -> bool:
    parts = pattern.rstrip("=").split("=")
    if len(parts) != 2 or parts[0].strip() not in _MATCH_KEYS:
        return False
    try:
        re.compile(parts[1].strip())
    except re.error:
        return False
    return True
