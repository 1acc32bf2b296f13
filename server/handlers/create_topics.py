"""CreateTopics (19), versions 2-7: make topics, or only say whether they could be made (validate_only).

- 4 accepts -1 for the broker's default number of partitions and replicas (KIP-464; earlier versions do too).
- 5 tells partitions, replicas and configs of the new topic (KIP-525), 7 its id.
- Every topic has its own result; names given twice fail, the rest goes on. All topics of a request are made in
  one atomic change, and their logs exist before the answer.
- A timeout of 0 or less is REQUEST_TIMED_OUT, as in KRaft, and nothing is made.
"""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.server.topic_creation import create_topics
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse


@serves(CreateTopicsRequest)
async def handle_create_topics(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Have the controller decide."""
    try:
        if request.timeout_ms <= 0:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        return await create_topics(context.broker, request)
    except KafkaError as error:
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=name, error_code=error.code, error_message=error.detail)
                for name in dict.fromkeys(topic.name for topic in request.topics)
            ]
        )
