"""Every partition this broker leads, found by topic name or topic id."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.server.partition import Partition
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import Uuid


class PartitionTable:
    """Two indexes over the same partitions."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[Uuid, dict[int, Partition]] = {}

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(len(partitions) for partitions in self._by_name.values())

    def by_name(self, topic: str, index: int) -> Partition:
        """The partition, or UNKNOWN_TOPIC_OR_PARTITION."""
        try:
            return self._by_name[topic][index]
        except KeyError:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from None

    def by_id(self, topic_id: Uuid, index: int) -> Partition:
        """The partition, UNKNOWN_TOPIC_ID, or UNKNOWN_TOPIC_OR_PARTITION when only the index is wrong."""
        partitions = self._by_id.get(topic_id)
        if partitions is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = partitions.get(index)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partition

    def of_topic(self, topic: str) -> dict[int, Partition]:
        """All partitions of a topic; empty when it is unknown."""
        return self._by_name.get(topic, {})

    def add(self, topic_id: Uuid, partition: Partition) -> None:
        partitions = self._by_name.setdefault(partition.topic, {})
        partitions[partition.index] = partition
        self._by_id[topic_id] = partitions

    def remove_topic(self, topic_id: Uuid, topic: str) -> list[Partition]:
        """Forget a topic and return its partitions."""
        self._by_id.pop(topic_id, None)
        return list(self._by_name.pop(topic, {}).values())
