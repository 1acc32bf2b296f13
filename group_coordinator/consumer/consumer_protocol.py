"""What consumers of the classic protocol put into their opaque bytes: a subscription when they join, an assignment
when they sync. A consumer group looks into both, because it assigns for such members too.

Two bytes of version stand in front. A newer version only adds fields, so it is read as the newest one known here.
"""

from __future__ import annotations

from typing import Final, TypeVar

from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.topics import Topics
from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import BYTES, INT32, STRING, Message, array, decoder, encode, field, record, structure

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
_NEWEST: Final = 3


@structure
class TopicPartition:
    topic: str = field(STRING)
    partitions: list[int] = array(INT32)


@record(versions=(0, 3))
class ConsumerProtocolSubscription(Message):
    topics: list[str] = array(STRING)
    user_data: bytes | None = field(BYTES, nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, "1+", ignorable=True)
    generation_id: int = field(INT32, "2+", default=-1, ignorable=True)
    rack_id: str | None = field(STRING, "3+", nullable="3+", default=None, ignorable=True)


@record(versions=(0, 3))
class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = field(BYTES, nullable="0+", default=None)


T = TypeVar("T")


def version_of(data: bytes) -> int:
    """The version in front, at most the newest known here; MalformedMessage when there is none."""
    if len(data) < 2:
        raise MalformedMessage("less than the two bytes of a version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise MalformedMessage(f"no version {version}")
    return min(version, _NEWEST)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """A member's subscription; MalformedMessage when it is none."""
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """A member's assignment; MalformedMessage when it is none."""
    return _read(ConsumerProtocolAssignment, data)


def write_assignment(assigned: Partitions, topics: Topics, version: int) -> bytes:
    """An assignment as a member that wrote this version reads it; topics that are gone are left out."""
    known = ((topics.by_id(topic_id), partitions) for topic_id, partitions in sorted(assigned.items()))
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=topic.name, partitions=sorted(partitions))
            for topic, partitions in known
            if topic is not None
        ]
    )
    return version.to_bytes(2, "big") + encode(message, version)


def partitions_by_id(topic_partitions: list[TopicPartition], topics: Topics) -> Partitions:
    """Names turned into ids; topics that are gone are left out."""
    known = ((topics.by_name(each.topic), each.partitions) for each in topic_partitions)
    return {topic.topic_id: frozenset(partitions) for topic, partitions in known if topic is not None}


def _read(kind: type[T], data: bytes) -> T:
    version = version_of(data)
    found, _ = decoder(kind, version)(memoryview(data), 2)
    return found
