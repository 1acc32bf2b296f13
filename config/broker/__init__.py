"""The table of broker configs: every config of Kafka's KafkaConfig, one file for each area."""

from collections.abc import Mapping
from typing import Final

from ottla.config.broker import (
    groups,
    log,
    network,
    oauth,
    quotas,
    remote,
    replication,
    sasl,
    security,
    server,
    share_groups,
    streams_groups,
    transactions,
)
from ottla.config.definition import ConfigDefinition, by_name

AREAS: Final = (
    server,
    network,
    log,
    replication,
    groups,
    streams_groups,
    share_groups,
    transactions,
    quotas,
    remote,
    security,
    sasl,
    oauth,
)

BROKER_CONFIGS: Final[Mapping[str, ConfigDefinition]] = by_name(*(row for area in AREAS for row in area.ROWS))
