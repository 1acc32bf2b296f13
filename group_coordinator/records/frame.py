"""Records of `__consumer_offsets` to bytes and back: the table of types, and the versions that are written."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.group_coordinator.records.classic_group import GroupMetadataKey, GroupMetadataValue
from ottla.group_coordinator.records.consumer_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ottla.group_coordinator.records.consumer_group import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from ottla.group_coordinator.records.offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.group_coordinator.records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from ottla.group_coordinator.records.streams_assignment import (
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
)
from ottla.group_coordinator.records.streams_current_assignment import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
)
from ottla.group_coordinator.records.streams_group import (
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import Message, decode, encode

RECORD_TYPES: dict[int, tuple[type[Message], type[Message]]] = {
    key.API_KEY: (key, value)
    for key, value in (
        (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
        (OffsetCommitKey, OffsetCommitValue),
        (GroupMetadataKey, GroupMetadataValue),
        (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
        (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
        (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
        (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
        (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
        (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
        (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
        (ShareGroupMetadataKey, ShareGroupMetadataValue),
        (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
        (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
        (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
        (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
        (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
        (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
        (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
        (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
        (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
        (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
        (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
    )
}
"""The class of the key and of the value by the type that a key starts with."""


class CoordinatorRecord(NamedTuple):
    """One record of `__consumer_offsets`; without a value it removes what the key names."""

    key: Message
    value: Message | None


class UnknownRecordType(Exception):
    """A record of a type that Kafka 4.3 does not have; a newer broker wrote it."""


def tombstone(key: Message) -> CoordinatorRecord:
    return CoordinatorRecord(key, None)


def encode_key(key: Message) -> bytes:
    return key.API_KEY.to_bytes(2, "big") + encode(key, 0)


def encode_value(value: Message | None) -> bytes | None:
    if value is None:
        return None
    version = _version_to_write(value)
    return version.to_bytes(2, "big") + encode(value, version)


def decode_record(key: bytes | memoryview, value: bytes | memoryview | None) -> CoordinatorRecord:
    """The record of these bytes; UnknownRecordType, or MalformedMessage when they are none."""
    key_class, value_class = _classes(_leading_int16(key))
    decoded_key: Any = decode(key_class, 0, key[2:])
    if value is None:
        return CoordinatorRecord(decoded_key, None)
    decoded_value: Any = decode(value_class, _leading_int16(value), value[2:])
    return CoordinatorRecord(decoded_key, decoded_value)


def _classes(record_type: int) -> tuple[type[Message], type[Message]]:
    try:
        return RECORD_TYPES[record_type]
    except KeyError:
        raise UnknownRecordType(f"record type {record_type}") from None


def _leading_int16(data: bytes | memoryview) -> int:
    if len(data) < 2:
        raise MalformedMessage("a key or value of less than two bytes")
    return int.from_bytes(data[:2], "big", signed=True)


def _version_to_write(value: Message) -> int:
    """Kafka's choice: the newest version, but where older brokers must be able to read it."""
    if isinstance(value, GroupMetadataValue):
        return 3
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp != -1:
        return 1
    return value.MAX_VERSION
