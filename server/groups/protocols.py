"""Which group protocols this broker serves: the config and the finalized feature must both allow one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ottla.metadata.features import GROUP_VERSION, SHARE_VERSION
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.server.broker import Broker


def check_consumer_protocol(broker: Broker) -> None:
    """UNSUPPORTED_VERSION unless consumer groups (KIP-848) are served."""
    protocols = cast(tuple[str, ...], broker.config.get("group.coordinator.rebalance.protocols"))
    if "consumer" not in protocols or broker.image.features.get(GROUP_VERSION, 0) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def check_share_protocol(broker: Broker) -> None:
    """UNSUPPORTED_VERSION unless share groups (KIP-932) are served."""
    if broker.image.features.get(SHARE_VERSION, 0) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
