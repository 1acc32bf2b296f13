"""DescribeTopicPartitions (75), version 0: partitions of topics in pages (KIP-966).

Topics come in the order of their names, all of them when none is named. A page ends after
response_partition_limit partitions (at most max.request.partition.size.limit, at least 1); next_cursor then says
where the next page begins, which may be a topic that does not exist. A request that goes on with a cursor must
name the cursor's topic if it names any. Named topics that do not exist are told as errors and cost nothing.
"""

from __future__ import annotations

from bisect import bisect_left

from ottla.metadata.image import PartitionImage
from ottla.metadata.topic_names import topic_name_error
from ottla.server.authorized_operations import ALL_TOPIC_OPERATIONS
from ottla.server.cluster_view import ClusterView
from ottla.server.context import RequestContext
from ottla.server.internal_topics import is_internal_topic
from ottla.server.registry import serves
from ottla.server.turns import Turns
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


class _Page:
    """One response being filled."""

    def __init__(self, context: RequestContext, limit: int) -> None:
        self._image = context.broker.image
        self._view = ClusterView(self._image, context.listener)
        self._left = limit
        self.response = DescribeTopicPartitionsResponse()

    async def add(self, turns: Turns, name: str, first_index: int, named: bool) -> bool:
        """Add a topic from a partition on; False when the page is full and the cursor set."""
        if self._left == 0:
            self.response.next_cursor = Cursor(topic_name=name, partition_index=0)
            return False
        topic = self._image.topics_by_name.get(name)
        if topic is None:
            if named:
                self._add_unknown(name)
            return True
        count = len(topic.partitions)
        end = min(count, first_index + self._left)
        partitions = []
        for index in range(first_index, end):
            partitions.append(self._partition(index, topic.partitions[index]))
            await turns.rest()
        self.response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=is_internal_topic(name),
                partitions=partitions,
                topic_authorized_operations=ALL_TOPIC_OPERATIONS,
            )
        )
        if end < count:
            self.response.next_cursor = Cursor(topic_name=name, partition_index=end)
            return False
        self._left -= len(partitions)
        return True

    def _add_unknown(self, name: str) -> None:
        invalid = topic_name_error(name) is not None
        code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                error_code=code,
                name=name,
                is_internal=is_internal_topic(name),
                topic_authorized_operations=ALL_TOPIC_OPERATIONS,
            )
        )

    def _partition(self, index: int, image: PartitionImage) -> DescribeTopicPartitionsResponsePartition:
        view = self._view.partition(index, image)
        return DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=view.leader,
            leader_epoch=image.leader_epoch,
            replica_nodes=list(image.replicas),
            isr_nodes=list(image.isr),
            eligible_leader_replicas=list(image.eligible_leader_replicas),
            last_known_elr=list(image.last_known_elr),
            offline_replicas=view.offline_replicas,
        )


def _refuse(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    topics = [
        DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
        for topic in request.topics
    ]
    return DescribeTopicPartitionsResponse(topics=topics)


@serves(DescribeTopicPartitionsRequest)
async def handle_describe_topic_partitions(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Fill one page."""
    broker, cursor = context.broker, request.cursor
    first_name = cursor.topic_name if cursor is not None else ""
    named = bool(request.topics)
    if named:
        names = sorted({topic.name for topic in request.topics if topic.name >= first_name})
        if cursor is not None and first_name not in names:
            return _refuse(request)
    else:
        all_names = broker.image.topic_names()
        names = all_names[bisect_left(all_names, first_name) :]
    if cursor is not None and cursor.partition_index < 0:
        return _refuse(request)
    page_limit = broker.config.get_int("max.request.partition.size.limit")
    page = _Page(context, max(min(page_limit, request.response_partition_limit), 1))
    async with Turns() as turns:
        for name in names:
            first_index = cursor.partition_index if cursor is not None and name == first_name else 0
            if not await page.add(turns, name, first_index, named):
                break
    return page.response
