"""DescribeQuorum (55), versions 0-2: who keeps the metadata log, and how far each of them is (KIP-595).

Alone, a node is the only voter, leads, and has everything. One partition can be asked for, that of the metadata;
anything else is UNKNOWN_TOPIC_OR_PARTITION for each partition of the request.
- 1 times of replicas (KIP-836); those of the leader are now.
- 2 directory ids and nodes (KIP-853). A voter has a directory id from kraft.version 1 on. The node tells no
  addresses: there is no listener for controllers.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Node,
    QuorumPartition,
    QuorumTopic,
    ReplicaState,
)

METADATA_TOPIC = "__cluster_metadata"


@serves(DescribeQuorumRequest)
def handle_describe_quorum(context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Answer for the quorum of one."""
    if [
        (topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics
    ] != [(METADATA_TOPIC, [0])]:
        return _refuse(request)
    store, now_ms = context.broker.store, context.broker.now_ms()
    voter = ReplicaState(
        replica_id=store.node_id,
        log_end_offset=store.next_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    with_nodes = context.api_version >= 2
    if with_nodes and store.kraft_version:
        voter.replica_directory_id = store.directory_ids.get(
            store.metadata_directory, voter.replica_directory_id
        )
    partition = QuorumPartition(
        leader_id=store.node_id,
        leader_epoch=store.epoch,
        high_watermark=store.image.last_offset + 1,
        current_voters=[voter],
    )
    return DescribeQuorumResponse(
        topics=[QuorumTopic(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[Node(node_id=store.node_id)] if with_nodes else [],
    )


def _refuse(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponse(
        topics=[
            QuorumTopic(
                topic_name=topic.topic_name,
                partitions=[
                    QuorumPartition(
                        partition_index=each.partition_index, error_code=error, error_message=error.message
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
