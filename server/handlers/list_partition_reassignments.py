"""ListPartitionReassignments (46), version 0: the partitions on their way to other brokers (KIP-455).

Alone, Ottla moves none; only in a directory that a Kafka left in the middle of a move there can be some. Topics and
partitions that are not there are left out of the answer, as are those that do not move.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.metadata.image import TopicImage
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


@serves(ListPartitionReassignmentsRequest)
def handle_list_partition_reassignments(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Answer from the image."""
    topics = context.broker.image.topics_by_name
    if request.topics is None:
        wanted = [(name, sorted(topics[name].partitions)) for name in context.broker.image.topic_names()]
    else:
        wanted = [(each.name, each.partition_indexes) for each in request.topics if each.name in topics]
    found = [
        OngoingTopicReassignment(name=name, partitions=moving)
        for name, partitions in wanted
        if (moving := _moving(topics[name], partitions))
    ]
    return ListPartitionReassignmentsResponse(error_message=None, topics=found)


def _moving(topic: TopicImage, partitions: Iterable[int]) -> list[OngoingPartitionReassignment]:
    found = []
    for index in partitions:
        partition = topic.partitions.get(index)
        if partition is not None and (partition.adding_replicas or partition.removing_replicas):
            found.append(
                OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=list(partition.replicas),
                    adding_replicas=list(partition.adding_replicas),
                    removing_replicas=list(partition.removing_replicas),
                )
            )
    return found
