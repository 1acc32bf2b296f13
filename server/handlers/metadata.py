"""Metadata (3), versions 0-13: brokers, topics, partitions and their leaders.

- All topics: null (1+) or, in version 0 only, an empty list. An empty list in 1+ means none.
- A name that does not exist is created when the client allows it (4+; before that always) and
  auto.create.topics.enable is on. Apache Kafka answers UNKNOWN_TOPIC_OR_PARTITION meanwhile and lets the client
  ask again; here the topic is there at once, so the first answer has its leaders.
- 1 racks and controller id, 2 cluster id, 5 offline replicas, 7 leader epochs, 8 authorized operations, 10 topic
  ids in the answer, 12 lookup by topic id (if any id is given, names are not looked at), 13 top-level error.
- A leader out of reach is LEADER_NOT_AVAILABLE; from 6 on, one without this listener is LISTENER_NOT_FOUND.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from ottla.metadata.image import PartitionImage, TopicImage
from ottla.metadata.topic_names import topic_name_error
from ottla.server.authorized_operations import (
    ALL_CLUSTER_OPERATIONS,
    ALL_TOPIC_OPERATIONS,
    OPERATIONS_NOT_ASKED,
)
from ottla.server.cluster_view import ClusterView
from ottla.server.context import RequestContext
from ottla.server.internal_topics import is_internal_topic
from ottla.server.registry import serves
from ottla.server.topic_creation import create_missing_topics
from ottla.server.turns import map_in_turns
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.uuids import ZERO_UUID

_LISTENER_NOT_FOUND_SINCE = 6
_CLUSTER_OPERATIONS_UNTIL = 10
_LOOKUP_BY_ID_SINCE = 12
_MANY = 500  # topics, or partitions of all of them


# A topic without its partitions, and these.
Found = tuple[MetadataResponseTopic, Mapping[int, PartitionImage]]


class _Answer:
    """Builds one response from the image as it is now."""

    def __init__(self, context: RequestContext, request: MetadataRequest) -> None:
        self._context = context
        self._image = context.broker.image
        self._view = ClusterView(self._image, context.listener)
        self._version = context.api_version
        self._operations = OPERATIONS_NOT_ASKED
        if request.include_topic_authorized_operations:
            self._operations = ALL_TOPIC_OPERATIONS
        self._cluster_operations = OPERATIONS_NOT_ASKED
        if request.include_cluster_authorized_operations and self._version <= _CLUSTER_OPERATIONS_UNTIL:
            self._cluster_operations = ALL_CLUSTER_OPERATIONS

    def respond(self, topics: list[MetadataResponseTopic]) -> MetadataResponse:
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
                for node in self._view.alive_nodes()
            ],
            cluster_id=self._context.broker.cluster_id,
            controller_id=self._view.any_broker_id(),
            topics=topics,
            cluster_authorized_operations=self._cluster_operations,
        )

    def all_names(self) -> list[str]:
        return list(self._image.topic_names())

    def by_id(self, topic_id: bytes) -> Found:
        topic = self._image.topics_by_id.get(topic_id)
        if topic is None:
            unknown = MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                name=None,
                topic_id=topic_id,
                topic_authorized_operations=OPERATIONS_NOT_ASKED,
            )
            return unknown, {}
        return self._topic(topic)

    def by_name(self, name: str) -> Found:
        topic = self._image.topics_by_name.get(name)
        if topic is not None:
            return self._topic(topic)
        invalid = topic_name_error(name) is not None
        code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        unknown = MetadataResponseTopic(
            error_code=code,
            name=name,
            topic_id=ZERO_UUID,
            is_internal=is_internal_topic(name),
            topic_authorized_operations=self._operations,
        )
        return unknown, {}

    def _topic(self, topic: TopicImage) -> Found:
        response = MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=is_internal_topic(topic.name),
            topic_authorized_operations=self._operations,
        )
        return response, topic.partitions

    def partition(self, numbered: tuple[int, PartitionImage]) -> MetadataResponsePartition:
        """One partition of a topic."""
        view = self._view.partition(*numbered)
        error = view.error
        if error == ErrorCode.LISTENER_NOT_FOUND and self._version < _LISTENER_NOT_FOUND_SINCE:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        replicas, isr = list(view.image.replicas), list(view.image.isr)
        if self._version == 0:
            # This version cannot mark replicas as offline, so they are left out.
            replicas, isr = self._alive(replicas), self._alive(isr)
            missing = len(replicas) < len(view.image.replicas) or len(isr) < len(view.image.isr)
            if missing and error == ErrorCode.NONE:
                error = ErrorCode.REPLICA_NOT_AVAILABLE
        return MetadataResponsePartition(
            error_code=error,
            partition_index=view.partition_index,
            leader_id=view.leader,
            leader_epoch=view.image.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=view.offline_replicas,
        )

    def _alive(self, brokers: list[int]) -> list[int]:
        return [broker for broker in brokers if self._view.alive_node(broker) is not None]


def _refuse(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    topics = [
        MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=code)


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


async def _by_name_with_creation(
    context: RequestContext, request: MetadataRequest, names: list[str]
) -> MetadataResponse:
    await create_missing_topics(context.broker, names)
    answer = _Answer(context, request)
    response = _respond(context, answer, map(answer.by_name, names))
    return response if isinstance(response, MetadataResponse) else await response


async def _in_turns(answer: _Answer, topics: Iterable[Found]) -> MetadataResponse:
    # What a topic has is noted when it is looked up, whatever becomes of it between two turns.
    found = await map_in_turns(lambda each: (each[0], sorted(each[1].items())), topics)

    def add(each: tuple[MetadataResponseTopic, tuple[int, PartitionImage]]) -> None:
        topic, partition = each
        topic.partitions.append(answer.partition(partition))

    await map_in_turns(add, ((topic, each) for topic, partitions in found for each in partitions))
    return answer.respond([topic for topic, _ in found])


async def _when_settled(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    await context.broker.wait_settled()
    response = _answer(context, request)
    return response if isinstance(response, MetadataResponse) else await response


@serves(MetadataRequest)
def handle_metadata(
    context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    """Answer from the image; wait only where topics have to be created first or are just being made.

    A leader that is told before its log is there would refuse the producer that comes at once.
    """
    if context.broker.settling:
        return _when_settled(context, request)
    return _answer(context, request)


def _answer(
    context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    broker = context.broker
    if request.topics is None or (not request.topics and context.api_version == 0):
        answer = _Answer(context, request)
        names = answer.all_names()
        context.has_many_elements = len(names) > _MANY
        return _respond(context, answer, map(answer.by_name, names))
    topic_ids = {topic.topic_id: None for topic in request.topics if topic.topic_id != ZERO_UUID}
    if topic_ids:
        if context.api_version < _LOOKUP_BY_ID_SINCE:
            return _refuse(request, ErrorCode.INVALID_REQUEST)
        answer = _Answer(context, request)
        return _respond(context, answer, map(answer.by_id, topic_ids))
    names = _unique(topic.name for topic in request.topics if topic.name is not None)
    if any(topic.name is None for topic in request.topics):
        return _refuse(request, ErrorCode.INVALID_REQUEST)
    if (
        request.allow_auto_topic_creation
        and any(name not in broker.image.topics_by_name for name in names)
        and broker.config.get_bool("auto.create.topics.enable")
    ):
        return _by_name_with_creation(context, request, names)
    answer = _Answer(context, request)
    return _respond(context, answer, map(answer.by_name, names))


def _respond(
    context: RequestContext, answer: _Answer, topics: Iterable[Found]
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    """At once, unless it is about very many topics or partitions."""
    if not context.has_many_elements:
        topics = list(topics)
        context.has_many_elements = sum(len(partitions) for _, partitions in topics) > _MANY
    if context.has_many_elements:
        return _in_turns(answer, topics)
    for topic, partitions in topics:
        topic.partitions = [answer.partition(each) for each in sorted(partitions.items())]
    return answer.respond([topic for topic, _ in topics])
