"""The levels of this broker's loggers as DescribeConfigs and IncrementalAlterConfigs see them (KIP-412).

They live as long as the process. Kafka's level names stand for Python's; TRACE is below DEBUG. Only `root` and
the loggers of the house are shown, not those of libraries.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ottla.config.resources import Operation
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.incremental_alter_configs import AlterableConfig

ROOT: Final = "root"
_LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": 5,
    "WARN": logging.WARNING,
}


def logger_levels() -> dict[str, str]:
    """The level in force of every logger, by name."""
    return {name: _level_name(logger.getEffectiveLevel()) for name, logger in sorted(_loggers().items())}


def check_node_id(name: str, node_id: int) -> None:
    """Loggers belong to one node, which must be this one."""
    try:
        asked = int(name)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        ) from None
    if asked != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {name}"
        )


def change_logger_levels(changes: Sequence[AlterableConfig], *, validate_only: bool) -> None:
    """Set levels, or delete them so that the parent's counts; all or, with KafkaError, none."""
    loggers = _loggers()
    for change in changes:
        _check(change, loggers)
    if validate_only:
        return
    for change in changes:
        level = _LEVELS[str(change.value)] if change.config_operation == Operation.SET else logging.NOTSET
        loggers[change.name].setLevel(level)


def _check(change: AlterableConfig, loggers: dict[str, logging.Logger]) -> None:
    operation = change.config_operation
    if operation == Operation.SET:
        if change.value not in _LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log "
                f"level. Valid log levels are {', '.join(_LEVELS)}",
            )
    elif operation not in list(Operation):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    elif operation != Operation.DELETE:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{Operation(operation).name} operation is not allowed for the BROKER_LOGGER resource",
        )
    if change.name not in loggers:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if operation == Operation.DELETE and change.name == ROOT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
        )


def _loggers() -> dict[str, logging.Logger]:
    known = logging.root.manager.loggerDict
    ours = {
        name: logger
        for name, logger in known.items()
        if isinstance(logger, logging.Logger) and (name == "ottla" or name.startswith("ottla."))
    }
    return {ROOT: logging.root, **ours}


def _level_name(level: int) -> str:
    """Kafka's name of the nearest level that shows no more than this one."""
    return min((value, name) for name, value in _LEVELS.items() if value >= min(level, logging.CRITICAL))[1]
