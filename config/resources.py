"""The kinds of things that have configs, and the checks that a change of their stored configs must pass.

These are the checks of Kafka's controller. A broker's own change is checked before that, by `broker_change`.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from ottla.config.broker_config import BrokerConfig
from ottla.config.client_metrics import check_client_metrics_configs
from ottla.config.definition import ConfigError
from ottla.config.group_configs import check_group_configs
from ottla.config.topic_rules import validate_topic_configs
from ottla.wire.errors import ErrorCode, KafkaError

_NULL_NAMES: Final = {16: "client metrics", 32: "group"}


class ResourceType(IntEnum):
    """What a config belongs to, numbered as on the wire and in the metadata log."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """What IncrementalAlterConfigs does to one config (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def check_resource_configs(
    resource_type: int,
    configs: Mapping[str, str | None],
    *,
    name: str,
    existing: Mapping[str, str],
    broker: BrokerConfig,
) -> None:
    """Raise KafkaError if a resource may not have all these configs stored; names of topics are not checked."""
    match resource_type:
        case ResourceType.TOPIC:
            validate_topic_configs(configs, broker, existing)
        case ResourceType.BROKER:
            _check_broker_name(name)
        case ResourceType.CLIENT_METRICS:
            check_client_metrics_configs(name, _without_nulls(resource_type, configs))
        case ResourceType.GROUP:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
            try:
                check_group_configs(_without_nulls(resource_type, configs), broker)
            except ConfigError as error:
                raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
        case _:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _without_nulls(resource_type: int, configs: Mapping[str, str | None]) -> dict[str, str]:
    nulls = [name for name, text in configs.items() if text is None]
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for {_NULL_NAMES[resource_type]} configs: {','.join(nulls)}",
        )
    return {name: text for name, text in configs.items() if text is not None}


def _check_broker_name(name: str) -> None:
    if not name:
        return
    try:
        broker_id = int(name)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."
        ) from None
    if broker_id < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
