"""ListConfigResources (74), versions 0-1: the names of what has configs (KIP-1142).

Version 0 knows client metrics only. A topic or a live broker is listed whether or not it has configs of its own, a
group or a client metrics subscription when it has some.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.config.resources import ResourceType
from ottla.metadata.image import MetadataImage
from ottla.server.cluster_view import ClusterView
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_TYPES_V1 = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


@serves(ListConfigResourcesRequest)
def handle_list_config_resources(
    ctx: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """Names of topics, brokers, groups and client metrics subscriptions that can be described."""
    known = (ResourceType.CLIENT_METRICS,) if ctx.api_version == 0 else _TYPES_V1
    if any(each not in known for each in request.resource_types):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    wanted = request.resource_types or known
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in known
            if resource_type in wanted
            for name in _names(ctx.broker.image, ctx.listener, resource_type)
        ]
    )


def _names(image: MetadataImage, listener: str, resource_type: ResourceType) -> Iterable[str]:
    match resource_type:
        case ResourceType.TOPIC:
            return image.topic_names()
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(node.id) for node in ClusterView(image, listener).alive_nodes()]
        case _:
            return [
                name for (kind, name), configs in image.configs.items() if kind == resource_type and configs
            ]
