"""What the drivers in Python make of what their libraries hand them: the objects of answers, and the places of calls.

Records of kafka-python and aiokafka have the same attributes; those of confluent-kafka have methods.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from compat_tests.matrix.drivers.serving import encoded

Offsets = dict[str, dict[str, int]]


def each_offset(offsets: Offsets) -> Iterator[tuple[str, int, int]]:
    """Topic, partition and offset of all that a call names."""
    for topic, partitions in offsets.items():
        for partition, offset in partitions.items():
            yield topic, int(partition), offset


def by_topic(partitions: Iterable[Any]) -> dict[str, list[int]]:
    """An assignment: the partitions of each topic, in order."""
    found: dict[str, list[int]] = {}
    for place in sorted(partitions):
        found.setdefault(place.topic, []).append(place.partition)
    return found


def polled(assignment: Iterable[Any], records: Iterable[Any]) -> dict[str, Any]:
    """What a member owns, and what it was given."""
    return {
        "assignment": by_topic(assignment),
        "records": [
            {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "key": encoded(record.key),
                "value": encoded(record.value),
            }
            for record in records
        ],
    }


def fetched(record: Any) -> dict[str, Any]:
    """A record that was read without a group."""
    return {
        "offset": record.offset,
        "key": encoded(record.key),
        "value": encoded(record.value),
        "headers": [[name, encoded(value)] for name, value in record.headers or []],
        "timestamp": record.timestamp,
    }
