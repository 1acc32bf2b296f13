"""Topics that come into being because somebody asked for them: auto-created ones and the broker's own.

Nobody waits for the answer of such a creation; what goes wrong is logged, and the topic stays unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.metadata.controller.create_topics import plan_create_topics
from ottla.metadata.topic_names import topic_name_error
from ottla.server.internal_topics import internal_topic_to_create
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from ottla.server.broker import Broker

log = logging.getLogger("ottla.server")

_DEFAULT = -1


async def create_topics(broker: Broker, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create topics as the controller decides. Raises KafkaError when the request fails as a whole."""
    return await broker.decide(
        lambda image: plan_create_topics(
            image,
            request,
            node_id=broker.node_id,
            config=broker.config,
            new_uuid=broker.random_uuid,
        )
    )


async def create_missing_topics(broker: Broker, names: Iterable[str]) -> None:
    """Create those topics that do not exist and have a valid name, with the broker's defaults."""
    known = broker.image.topics_by_name
    wanted = [name for name in names if name not in known and topic_name_error(name) is None]
    if not wanted:
        return
    brokers = sum(not registration.fenced for registration in broker.image.brokers.values())
    topics = [
        internal_topic_to_create(name, broker.config, brokers)
        or CreatableTopic(name=name, num_partitions=_DEFAULT, replication_factor=_DEFAULT)
        for name in wanted
    ]
    try:
        response = await create_topics(broker, CreateTopicsRequest(topics=topics))
    except KafkaError as error:
        log.warning("topics not created names=%s error=%s", ",".join(wanted), error)
        return
    for result in response.topics:
        # Somebody else may have been quicker, which is as good.
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            log.warning(
                "topic not created name=%s error=%d: %s", result.name, result.error_code, result.error_message
            )
