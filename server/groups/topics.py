"""The metadata image as groups see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.group_coordinator.topics import Topic
from ottla.metadata.image import MetadataImage, TopicImage
from ottla.wire.uuids import Uuid


class ImageTopics:
    """Answers from whatever image is current. What a group is told of a topic is kept while the image stays as it is: a
    group may read very many, and looks at each several times."""

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self._found: dict[Uuid, Topic] = {}
        self._found_in = -1  # the version of the image

    @property
    def version(self) -> int:
        return self._image().last_offset

    def by_name(self, name: str) -> Topic | None:
        found = self._image().topics_by_name.get(name)
        return None if found is None else self._topic(found)

    def by_id(self, topic_id: Uuid) -> Topic | None:
        found = self._image().topics_by_id.get(topic_id)
        return None if found is None else self._topic(found)

    def names(self) -> Iterable[str]:
        return self._image().topics_by_name

    def _topic(self, topic: TopicImage) -> Topic:
        version = self._image().last_offset
        if version != self._found_in:
            self._found.clear()
            self._found_in = version
        found = self._found.get(topic.topic_id)
        if found is None:
            found = self._found[topic.topic_id] = self._look_up(topic)
        return found

    def _look_up(self, topic: TopicImage) -> Topic:
        brokers = self._image().brokers
        if not any(broker.rack for broker in brokers.values()):
            return Topic(topic.name, topic.topic_id, len(topic.partitions))
        racks = tuple(
            tuple(
                rack
                for replica in topic.partitions[index].replicas
                if replica in brokers and (rack := brokers[replica].rack)
            )
            for index in sorted(topic.partitions)
        )
        return Topic(topic.name, topic.topic_id, len(topic.partitions), racks)
