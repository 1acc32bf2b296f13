"""The records of `__consumer_offsets` against Kafka's definitions and the bytes of its Java classes."""

from typing import Any

import pytest
from hypothesis import given, settings

from compat_tests.kafka.definitions import definitions, differences
from compat_tests.kafka.message_bridge import MessageBridge
from compat_tests.kafka.message_json import message_json
from ottla.group_coordinator.records import (
    CoordinatorRecord,
    UnknownRecordType,
    decode_record,
    encode_key,
    encode_value,
    tombstone,
)
from ottla.group_coordinator.records.classic_group import GroupMetadataKey, GroupMetadataValue
from ottla.group_coordinator.records.frame import RECORD_TYPES
from ottla.group_coordinator.records.offsets import OffsetCommitKey, OffsetCommitValue
from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import decode, encode
from tests.wire.strategies import instances

CLASSES: list[Any] = [cls for pair in RECORD_TYPES.values() for cls in pair]


def kafkas() -> dict[str, Any]:
    return definitions("kafka-group-coordinator")


def test_every_record_of_kafka_is_known() -> None:
    """Whatever a Kafka 4.3 offsets topic can hold has a class here, under Kafka's number."""
    expected = {
        name: definition["apiKey"]
        for name, definition in kafkas().items()
        if definition["type"].startswith("coordinator-")
    }
    assert {cls.__name__: cls.API_KEY for cls in CLASSES} == expected


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_fields_are_kafkas(cls: Any) -> None:
    """Names, types, versions, tags and defaults are those of Kafka's definition."""
    assert differences(cls, kafkas()[cls.__name__]) == []


@pytest.mark.parametrize(
    ("cls", "version"),
    [
        pytest.param(cls, version, id=f"{cls.__name__}-v{version}")
        for cls in CLASSES
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    ],
)
def test_bytes_are_kafkas(cls: Any, version: int, kafka_messages: MessageBridge) -> None:
    """Kafka writes the same bytes for the same values, and we read the same values from them."""
    java_class = f"org.apache.kafka.coordinator.group.generated.{cls.__name__}"

    @settings(max_examples=8)
    @given(instances(cls, version))
    def check(record: Any) -> None:
        theirs = kafka_messages.write(
            java_class, version, message_json(record, version, kafkas()[cls.__name__])
        )
        assert encode(record, version) == theirs
        assert decode(cls, version, theirs) == record

    check()


def test_frame_of_an_offset() -> None:
    """The key starts with the type of the record, the value with its version."""
    record = CoordinatorRecord(OffsetCommitKey("g", "t", 3), OffsetCommitValue(7, metadata="m"))
    key, value = encode_key(record.key), encode_value(record.value)
    assert key == bytes.fromhex("0001 0001 67 0001 74 00000003")
    assert value is not None
    assert value[:2] == b"\0\4"
    assert decode_record(key, value) == record


def test_versions_that_are_written() -> None:
    """Older brokers can read groups and offsets with an expiry, as Kafka writes them."""
    assert (encode_value(GroupMetadataValue()) or b"")[:2] == b"\0\3"
    assert (encode_value(OffsetCommitValue(expire_timestamp=5)) or b"")[:2] == b"\0\1"


def test_tombstone() -> None:
    """A record without a value keeps its key."""
    record = tombstone(GroupMetadataKey("g"))
    assert encode_value(record.value) is None
    assert decode_record(encode_key(record.key), None) == record


def test_unknown_and_broken_records() -> None:
    """What a newer broker wrote is told apart from what nobody wrote."""
    with pytest.raises(UnknownRecordType):
        decode_record(b"\x7f\xff", None)
    with pytest.raises(MalformedMessage):
        decode_record(b"\0", None)
