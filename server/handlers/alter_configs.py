"""AlterConfigs (33), versions 0-2: give a resource exactly these configs. Old clients; the others use key 44."""

from __future__ import annotations

from ottla.metadata.controller.alter_configs import plan_alter_configs
from ottla.server.broker_layers import broker_layers
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


@serves(AlterConfigsRequest)
async def handle_alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replaces all configs of a topic, broker, group or client metrics subscription."""
    broker = ctx.broker
    static = broker_layers(broker).static
    return await broker.decide(
        lambda image: plan_alter_configs(image, request, node_id=broker.node_id, config=static)
    )
