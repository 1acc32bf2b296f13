"""Every partition this broker leads, found by topic name or topic id.

One whose log directory has failed, or whose log is damaged, is known too, and answered with
KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.server.partition import Partition
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import Uuid


class PartitionTable:
    """Two indexes over the same partitions, and the ones that are offline."""

    def __init__(self) -> None:
        self.offline: set[tuple[Uuid, int]] = set()
        self._offline_names: set[tuple[str, int]] = set()
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[Uuid, dict[int, Partition]] = {}

    @property
    def indexes(self) -> tuple[dict[str, dict[int, Partition]], dict[Uuid, dict[int, Partition]]]:
        """Partitions by the name and by the id of their topic: the same dictionaries as long as the table lives."""
        return self._by_name, self._by_id

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(len(partitions) for partitions in self._by_name.values())

    def by_name(self, topic: str, index: int) -> Partition:
        """The partition, UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR when it is offline."""
        try:
            return self._by_name[topic][index]
        except KeyError:
            if (topic, index) in self._offline_names:
                raise _offline(f"{topic}-{index}") from None
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from None

    def by_id(self, topic_id: Uuid, index: int) -> Partition:
        """The partition, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION when only the index is wrong, or
        KAFKA_STORAGE_ERROR when it is offline."""
        partitions = self._by_id.get(topic_id)
        if partitions is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = partitions.get(index)
        if partition is None:
            if (topic_id, index) in self.offline:
                raise _offline(f"Partition {index}")
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partition

    def of_topic(self, topic: str) -> dict[int, Partition]:
        """All partitions of a topic; empty when it is unknown."""
        return self._by_name.get(topic, {})

    def add(self, topic_id: Uuid, partition: Partition) -> None:
        partitions = self._by_name.setdefault(partition.topic, {})
        partitions[partition.index] = partition
        self._by_id[topic_id] = partitions

    def set_offline(self, topic_id: Uuid, topic: str, index: int) -> Partition | None:
        """Serve a partition no more, because its storage has failed; returns it if it was served."""
        partitions = self._by_name.setdefault(topic, {})
        self._by_id[topic_id] = partitions
        self.offline.add((topic_id, index))
        self._offline_names.add((topic, index))
        return partitions.pop(index, None)

    def remove_topic(self, topic_id: Uuid, topic: str) -> list[Partition]:
        """Forget a topic and return its partitions."""
        if self.offline:
            self.offline = {key for key in self.offline if key[0] != topic_id}
            self._offline_names = {key for key in self._offline_names if key[0] != topic}
        self._by_id.pop(topic_id, None)
        return list(self._by_name.pop(topic, {}).values())


def _offline(name: str) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is in an offline log directory or damaged.")
