"""The hash of a group's topics that is kept in the log (KIP-1101): when it changes, partitions are assigned anew.

It is Kafka's, bit for bit: XXH3 over id, name, partition count and racks of each topic, then over those hashes in order
of the names. So a directory that moves between Kafka and Ottla does not make its groups rebalance.
"""

import struct
from collections.abc import Iterable
from functools import lru_cache

import xxhash

from ottla.group_coordinator.topics import Topic, Topics

_HEAD = struct.Struct("<bqq")
_IDS = struct.Struct(">qq")


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """The hash of those of the topics that exist; 0 for none."""
    known = (topics.by_name(name) for name in sorted(names))
    hashes = [_topic_hash(topic) for topic in known if topic is not None]
    return _signed_xxh3(struct.pack(f"<{len(hashes)}q", *hashes)) if hashes else 0


@lru_cache(maxsize=1024)
def _topic_hash(topic: Topic) -> int:
    data = bytearray(_HEAD.pack(0, *_IDS.unpack(topic.topic_id)))
    data += _text(topic.name)
    data += struct.pack("<i", topic.partition_count)
    for partition in range(topic.partition_count):
        data += struct.pack("<i", partition)
        racks = topic.partition_racks[partition] if topic.partition_racks else ()
        for rack in sorted(racks):
            data += struct.pack("<i", _utf16_length(rack)) + _text(rack)
    return _signed_xxh3(bytes(data))


def _text(text: str) -> bytes:
    return text.encode("utf-16-le") + struct.pack("<i", _utf16_length(text))


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _signed_xxh3(data: bytes) -> int:
    return int.from_bytes(xxhash.xxh3_64_digest(data), "big", signed=True)
