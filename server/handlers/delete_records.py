"""DeleteRecords (21), versions 0-2: move the start of partitions forward (KIP-107).

Records below the offset are gone for every reader at once; -1 means everything up to the high watermark, and an
offset beyond that is OFFSET_OUT_OF_RANGE. An offset below the log start changes nothing. The low watermark in the
answer is the log start offset. Internal topics are INVALID_TOPIC_EXCEPTION, topics that are only compacted
POLICY_VIOLATION. The client's timeout is for replicas to follow; one replica is done at once.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.internal_topics import is_internal_topic
from ottla.server.registry import serves
from ottla.server.turns import Turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_NO_WATERMARK = -1


async def _delete(
    context: RequestContext, topic: str, index: int, offset: int, turns: Turns
) -> DeleteRecordsPartitionResult:
    try:
        partition = context.broker.partitions.by_name(topic, index)
        if is_internal_topic(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        policy = partition.log.config.cleanup_policy
        if "compact" in policy and "delete" not in policy:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        log = partition.log
        low_watermark = log.delete_records_before(offset)
        await turns.rest()
        while not log.is_closed and log.slot_of(low_watermark):
            log.delete_records_before(low_watermark)
            await turns.rest()
    except KafkaError as error:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=_NO_WATERMARK, error_code=error.code
        )
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


@serves(DeleteRecordsRequest)
async def handle_delete_records(
    context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Delete in every partition named; of a partition named twice the last word counts. Each writes a small file or
    two, so they are done in turns."""
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = wanted.setdefault(topic.name, {})
        offsets.update((partition.partition_index, partition.offset) for partition in topic.partitions)
    response = DeleteRecordsResponse()
    for name, offsets in wanted.items():
        if offsets:
            async with Turns() as turns:
                results = [await _delete(context, name, *each, turns) for each in offsets.items()]
            response.topics.append(DeleteRecordsTopicResult(name=name, partitions=results))
    return response
