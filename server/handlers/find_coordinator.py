"""FindCoordinator (10), versions 0-6: which broker coordinates a group or a transactional id.

The leader of the group's partition of `__consumer_offsets` does, or of the id's partition of `__transaction_state`; the
topic is made when it is first asked for, and since that is done before the answer, clients do not have to ask again
as with Apache Kafka. Host and port are those of the listener on which the request came in.

- 1 key types: 0 group, 1 transactional id, 2 share group (6+). Others are INVALID_REQUEST.
- 4 several keys at once (KIP-699); every key has its own error.
- A share key is `group:topic id:partition`; the leader of its partition of `__share_group_state` coordinates it.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial

from ottla.server.cluster_view import ClusterView, Node
from ottla.server.context import RequestContext
from ottla.server.internal_topics import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    coordinator_partition,
)
from ottla.server.registry import serves
from ottla.server.topic_creation import create_missing_topics
from ottla.server.turns import map_in_turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.uuids import parse_uuid

_SEVERAL_KEYS_SINCE = 4
_SHARE_SINCE = 6


class KeyType(IntEnum):
    """What a coordinator is looked for."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


_TOPICS = {
    KeyType.GROUP: OFFSETS_TOPIC,
    KeyType.TRANSACTION: TRANSACTIONS_TOPIC,
    KeyType.SHARE: SHARE_STATE_TOPIC,
}


def _topic_of(key_type: int, version: int) -> str | None:
    """The topic whose partitions decide; None for a type that this version does not have."""
    if key_type not in _TOPICS or (key_type == KeyType.SHARE and version < _SHARE_SINCE):
        return None
    return _TOPICS[KeyType(key_type)]


def _coordinator(context: RequestContext, topic_name: str, key: str) -> Node:
    image = context.broker.image
    if topic_name == SHARE_STATE_TOPIC:
        _check_share_key(key)
    topic = image.topics_by_name.get(topic_name)
    if topic is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = topic.partitions[coordinator_partition(key, len(topic.partitions))]
    node = ClusterView(image, context.listener).alive_node(partition.leader)
    if node is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return node


def _check_share_key(key: str) -> None:
    """INVALID_REQUEST unless it has a group, a topic id and a partition."""
    parts = key.rsplit(":", 2)
    try:
        if len(parts) != 3 or not parts[0].strip():
            raise ValueError(key)
        parse_uuid(parts[1])
        int(parts[2])
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST) from None


def _find(context: RequestContext, topic_name: str | None, key: str) -> Coordinator:
    try:
        if topic_name is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        node = _coordinator(context, topic_name, key)
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.message
        )
    return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port)


@serves(FindCoordinatorRequest)
async def handle_find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Find the coordinator of every key."""
    topic_name = _topic_of(request.key_type, context.api_version)
    several = context.api_version >= _SEVERAL_KEYS_SINCE
    keys = request.coordinator_keys if several else [request.key]
    if topic_name is not None and keys:
        await context.broker.wait_settled()
        await create_missing_topics(context.broker, [topic_name])
    found = await map_in_turns(partial(_find, context, topic_name), keys)
    if several:
        return FindCoordinatorResponse(coordinators=found)
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message or "NONE",
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )
