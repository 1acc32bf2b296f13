"""DescribeCluster (60), versions 0-2: the brokers of the cluster, its id and controller (KIP-700).

- 1 endpoint types (KIP-919): this is a broker's endpoint, so asking for controllers is MISMATCHED_ENDPOINT_TYPE
  and any other number UNSUPPORTED_ENDPOINT_TYPE.
- 2 fenced brokers, if asked for (KIP-1073).
"""

from __future__ import annotations

from ottla.server.authorized_operations import ALL_CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED
from ottla.server.cluster_view import ClusterView
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS = 1
_CONTROLLERS = 2


@serves(DescribeClusterRequest)
def handle_describe_cluster(
    context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Answer from the image, for the listener the request came in on."""
    if request.endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type"
            " CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    view = ClusterView(context.broker.image, context.listener)
    nodes = view.nodes.values() if request.include_fenced_brokers else view.alive_nodes()
    with_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=context.broker.cluster_id,
        controller_id=view.any_broker_id(),
        brokers=[
            DescribeClusterBroker(
                broker_id=node.id, host=node.host, port=node.port, rack=node.rack, is_fenced=node.fenced
            )
            for node in nodes
        ],
        cluster_authorized_operations=ALL_CLUSTER_OPERATIONS if with_operations else OPERATIONS_NOT_ASKED,
    )
