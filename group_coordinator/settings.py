"""The settings that groups obey, taken from the broker's configuration."""

from __future__ import annotations

from typing import Self

from ottla.config.broker_config import BrokerConfig
from ottla.wire.dataclass import dataclass

LEAST_INITIAL_DELAY_MS = 3
"""Members that join at once are a few requests apart. Who wants no delay has them in one generation nevertheless, and
does not notice; without it the first of them alone are one, and the others have to have them join again."""

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member may be parked in its first JoinGroup; nobody would notice if it had gone meanwhile."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    initial_rebalance_delay_ms: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_size: int
    offset_metadata_max_bytes: int
    offsets_retention_ms: int
    offsets_retention_check_interval_ms: int

    @classmethod
    def from_config(cls, config: BrokerConfig) -> Self:
        return cls(
            initial_rebalance_delay_ms=max(
                config.get_int("group.initial.rebalance.delay.ms"), LEAST_INITIAL_DELAY_MS
            ),
            min_session_timeout_ms=config.get_int("group.min.session.timeout.ms"),
            max_session_timeout_ms=config.get_int("group.max.session.timeout.ms"),
            max_size=config.get_int("group.max.size"),
            offset_metadata_max_bytes=config.get_int("offset.metadata.max.bytes"),
            offsets_retention_ms=config.get_int("offsets.retention.minutes") * 60_000,
            offsets_retention_check_interval_ms=config.get_int("offsets.retention.check.interval.ms"),
        )
