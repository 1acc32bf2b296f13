"""WriteTxnMarkers (27), versions 1-2: end transactions in partitions.

Coordinators of other brokers send it, and admins that abort a transaction which hangs (KIP-664).

- 2 carries the transaction version; below it the marker is judged as one of version 0 (KIP-1228).
"""

from __future__ import annotations

from ottla.log_store.checkpoints import TopicPartition
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.transactions.markers import Marker, write_markers
from ottla.server.turns import work_in_thread_if
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


@serves(WriteTxnMarkersRequest)
async def handle_write_txn_markers(
    context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """Write every marker; those of one producer are answered together."""
    results: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for wanted in request.markers:
        marker = Marker(
            wanted.producer_id,
            wanted.producer_epoch,
            wanted.coordinator_epoch,
            wanted.transaction_result,
            wanted.transaction_version,
        )
        partitions = [(topic.name, index) for topic in wanted.topics for index in topic.partition_indexes]
        if wanted.producer_id < 0 or wanted.producer_epoch < 0:
            # A control batch of nobody must not get into a log. Kafka stumbles over it with this error.
            written = dict.fromkeys(partitions, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            written = await write_markers(context.broker, marker, partitions)
        results.setdefault(wanted.producer_id, {}).update(written)
    return await work_in_thread_if(context.has_many_elements, _response, results)


def _response(results: dict[int, dict[TopicPartition, ErrorCode]]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[WritableTxnMarkerResult(producer_id, _topics(rows)) for producer_id, rows in results.items()]
    )


def _topics(rows: dict[TopicPartition, ErrorCode]) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for (name, index), error in rows.items():
        topic = topics.setdefault(name, WritableTxnMarkerTopicResult(name))
        topic.partitions.append(WritableTxnMarkerPartitionResult(index, error))
    return list(topics.values())
