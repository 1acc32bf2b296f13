"""The levels of this broker's configs, as the image of the metadata has them now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.config.broker_change import BrokerLayers

if TYPE_CHECKING:
    from ottla.server.broker import Broker


def broker_layers(broker: Broker) -> BrokerLayers:
    """Static, cluster-wide and own configs; a node.id that was found rather than given counts as static."""
    static = broker.static_config
    if static.node_id() is None:
        static = static.with_properties({"node.id": str(broker.node_id)})
    return BrokerLayers(
        static, broker.image.broker_configs(None), broker.image.broker_configs(broker.node_id)
    )
