"""CreatePartitions (37), versions 0-3: give topics more partitions (KIP-195).

`count` is the new total; assignments, if any, are those of the additional partitions. Each topic has its own
result. A timeout of 0 or less is REQUEST_TIMED_OUT, as in KRaft, and nothing is made. A request that asks for more
than one atomic change can hold is refused whole.
"""

from __future__ import annotations

from ottla.metadata.controller.create_partitions import plan_create_partitions
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


@serves(CreatePartitionsRequest)
async def handle_create_partitions(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Have the controller decide."""
    broker = context.broker
    try:
        if request.timeout_ms <= 0:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        return await broker.decide(
            lambda image: plan_create_partitions(image, request, node_id=broker.node_id)
        )
    except KafkaError as error:
        return CreatePartitionsResponse(
            results=[
                CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.detail)
                for name in dict.fromkeys(topic.name for topic in request.topics)
            ]
        )
