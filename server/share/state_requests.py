"""The five requests that brokers send to the share coordinator, partition by partition."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from ottla.group_coordinator.share_state.shard import SharePartitionKey
from ottla.wire.errors import KafkaError
from ottla.wire.uuids import Uuid

Partition = TypeVar("Partition", bound="_Partition")
Partition_co = TypeVar("Partition_co", bound="_Partition", covariant=True)
Result = TypeVar("Result", bound="_Result")


class _Partition(Protocol):
    partition: int


class _Topic(Protocol[Partition_co]):
    @property
    def topic_id(self) -> Uuid: ...

    @property
    def partitions(self) -> Sequence[Partition_co]: ...


class _Result(Protocol):
    partition: int
    error_code: int
    error_message: str | None


async def answer_each(
    group_id: str,
    topics: Sequence[_Topic[Partition]],
    act: Callable[[SharePartitionKey, Partition], Awaitable[Result]],
    failed: Callable[[], Result],
) -> list[tuple[Uuid, list[Result]]]:
    """What became of each partition, by topic; nothing at all when the group or a topic's partitions are missing."""
    if not group_id or not all(topic.partitions for topic in topics):
        return []
    answers = []
    for topic in topics:
        results = []
        for wanted in topic.partitions:
            key = SharePartitionKey(group_id, topic.topic_id, wanted.partition)
            try:
                result = await act(key, wanted)
            except KafkaError as error:
                result = failed()
                result.error_code, result.error_message = error.code, error.message
            result.partition = wanted.partition
            results.append(result)
        answers.append((topic.topic_id, results))
    return answers
