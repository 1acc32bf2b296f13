"""What one commit changed in the image: what the server has to act on (make and delete logs, new configs)."""

from ottla.metadata.image.topics import PartitionImage, TopicImage
from ottla.wire.dataclass import dataclass, field


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A partition that existed before and is different now."""

    topic: TopicImage
    partition: int
    before: PartitionImage
    after: PartitionImage


@dataclass(slots=True)
class MetadataDelta:
    """The changes of one or more records, in the order in which they were applied.

    A topic that was made and deleted by the same records is in neither list. `new_partitions` holds every
    partition made, those of created topics included.
    """

    created_topics: list[TopicImage] = field(default_factory=list)
    deleted_topics: list[TopicImage] = field(default_factory=list)
    new_partitions: list[tuple[TopicImage, int]] = field(default_factory=list)
    changed_partitions: list[PartitionChange] = field(default_factory=list)
    changed_configs: dict[tuple[int, str], None] = field(default_factory=dict)
    features_changed: bool = False
    nodes_changed: bool = False
    security_changed: bool = False
    quotas_changed: bool = False

    def topic_deleted(self, topic: TopicImage) -> None:
        """Note a deletion, and forget what the same delta said about the topic before."""
        self.new_partitions = [entry for entry in self.new_partitions if entry[0] is not topic]
        self.changed_partitions = [change for change in self.changed_partitions if change.topic is not topic]
        for position, created in enumerate(self.created_topics):
            if created is topic:
                del self.created_topics[position]
                return
        self.deleted_topics.append(topic)
