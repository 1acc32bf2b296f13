"""Every partition this broker leads, found by topic name or topic id.

One whose log the disk refuses is offline: it is known, and asking for it gives KAFKA_STORAGE_ERROR, as in Kafka.
"""

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
        self._offline: set[tuple[str | Uuid, int]] = set()  # by name and by id

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(len(partitions) for partitions in self._by_name.values())

    def by_name(self, topic: str, index: int) -> Partition:
        """The partition, or UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR."""
        try:
            return self._by_name[topic][index]
        except KeyError:
            raise self._why_not(topic, index) from None

    def by_id(self, topic_id: Uuid, index: int) -> Partition:
        """The partition, UNKNOWN_TOPIC_ID, or UNKNOWN_TOPIC_OR_PARTITION when only the index is wrong."""
        partitions = self._by_id.get(topic_id)
        if partitions is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = partitions.get(index)
        if partition is None:
            raise self._why_not(topic_id, index)
        return partition

    def _why_not(self, topic: str | Uuid, index: int) -> KafkaError:
        if (topic, index) in self._offline:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The log of the partition is offline.")
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def of_topic(self, topic: str) -> dict[int, Partition]:
        """All partitions of a topic; empty when it is unknown."""
        return self._by_name.get(topic, {})

    def add(self, topic_id: Uuid, partition: Partition) -> None:
        partitions = self._by_name.setdefault(partition.topic, {})
        partitions[partition.index] = partition
        self._by_id[topic_id] = partitions

    def add_offline(self, topic_id: Uuid, topic: str, index: int) -> None:
        """Know a partition that cannot be served."""
        self._by_id[topic_id] = self._by_name.setdefault(topic, {})
        self._offline |= {(topic, index), (topic_id, index)}

    def remove_topic(self, topic_id: Uuid, topic: str) -> list[Partition]:
        """Forget a topic and return its partitions."""
        self._by_id.pop(topic_id, None)
        self._offline = {each for each in self._offline if each[0] not in (topic_id, topic)}
        return list(self._by_name.pop(topic, {}).values())
