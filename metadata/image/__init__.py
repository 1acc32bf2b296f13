"""The metadata image, its topics and partitions, and the delta that a commit leaves."""

from ottla.metadata.image.delta import MetadataDelta, PartitionChange
from ottla.metadata.image.image import BROKER_RESOURCE, TOPIC_RESOURCE, Foldable, MetadataImage, prepared
from ottla.metadata.image.topics import PartitionImage, TopicImage

__all__ = [
    "BROKER_RESOURCE",
    "TOPIC_RESOURCE",
    "Foldable",
    "MetadataDelta",
    "MetadataImage",
    "PartitionChange",
    "PartitionImage",
    "TopicImage",
    "prepared",
]
