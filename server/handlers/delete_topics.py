"""DeleteTopics (20), versions 1-6: delete topics by name, from 6 on also by id (KIP-516).

- A topic of an entry with both or neither of name and id, named twice, or unknown, fails alone.
- With delete.topic.enable off: TOPIC_DELETION_DISABLED, before version 3 INVALID_REQUEST.
- 5 adds error messages. A timeout of 0 or less is REQUEST_TIMED_OUT, as in KRaft, and nothing is deleted.
- The topic is gone for clients when the answer leaves; its files are removed later (file.delete.delay.ms).
"""

from __future__ import annotations

from ottla.metadata.controller.delete_topics import plan_delete_topics
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.uuids import ZERO_UUID, Uuid


@serves(DeleteTopicsRequest)
async def handle_delete_topics(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Have the controller decide."""
    broker = context.broker
    try:
        if request.timeout_ms <= 0:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        return await broker.decide(
            lambda image: plan_delete_topics(
                image, request, api_version=context.api_version, config=broker.config
            )
        )
    except KafkaError as error:
        named: list[tuple[str | None, Uuid]] = [(name, ZERO_UUID) for name in request.topic_names]
        named += [(topic.name, topic.topic_id) for topic in request.topics]
        return DeleteTopicsResponse(
            responses=[
                DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code)
                for name, topic_id in named
            ]
        )
