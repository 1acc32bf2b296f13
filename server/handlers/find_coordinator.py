"""FindCoordinator (10), versions 0-6: which broker coordinates a group.

The leader of the group's partition of `__consumer_offsets` does; the topic is made when it is first asked for, and
since that is done before the answer, clients do not have to ask again as with Apache Kafka. Host and port are
those of the listener on which the request came in.

- 1 key types: 0 group, 1 transactional id, 2 share group (6+). Others are INVALID_REQUEST.
- 4 several keys at once (KIP-699); every key has its own error.
- This broker coordinates no transactions and no share groups yet. Their clients get UNSUPPORTED_VERSION, which
  they take as final; COORDINATOR_NOT_AVAILABLE would keep them asking until their own timeout.
"""

from __future__ import annotations

from enum import IntEnum

from ottla.server.cluster_view import NO_NODE, ClusterView, Node
from ottla.server.context import RequestContext
from ottla.server.internal_topics import OFFSETS_TOPIC, coordinator_partition
from ottla.server.registry import serves
from ottla.server.topic_creation import create_missing_topics
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_SEVERAL_KEYS_SINCE = 4
_SHARE_SINCE = 6


class KeyType(IntEnum):
    """What a coordinator is looked for."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


def _refusal(key_type: int, version: int) -> ErrorCode:
    if key_type == KeyType.GROUP:
        return ErrorCode.NONE
    if key_type == KeyType.TRANSACTION or (key_type == KeyType.SHARE and version >= _SHARE_SINCE):
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.INVALID_REQUEST


def _group_coordinator(context: RequestContext, group_id: str) -> tuple[ErrorCode, Node]:
    image = context.broker.image
    topic = image.topics_by_name.get(OFFSETS_TOPIC)
    if topic is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_NODE
    partition = topic.partitions[coordinator_partition(group_id, len(topic.partitions))]
    node = ClusterView(image, context.listener).alive_node(partition.leader)
    if node is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_NODE
    return ErrorCode.NONE, node


@serves(FindCoordinatorRequest)
async def handle_find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Find the coordinator of every key."""
    several = context.api_version >= _SEVERAL_KEYS_SINCE
    keys = request.coordinator_keys if several else [request.key]
    refusal = _refusal(request.key_type, context.api_version)
    if refusal == ErrorCode.NONE and keys:
        await context.broker.wait_settled()
        await create_missing_topics(context.broker, [OFFSETS_TOPIC])
        found = [_group_coordinator(context, key) for key in keys]
    else:
        found = [(refusal, NO_NODE)] * len(keys)
    if several:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(
                    key=key,
                    node_id=node.id,
                    host=node.host,
                    port=node.port,
                    error_code=code,
                    error_message=code.message if code else "",
                )
                for key, (code, node) in zip(keys, found, strict=True)
            ]
        )
    code, node = found[0]
    return FindCoordinatorResponse(
        error_code=code,
        error_message=code.message if code else "NONE",
        node_id=node.id,
        host=node.host,
        port=node.port,
    )
