"""The records of `__transaction_state` against Kafka's definitions and the bytes of its Java classes."""

from typing import Any

import pytest
from hypothesis import given, settings

from compat_tests.kafka.definitions import definitions, differences
from compat_tests.kafka.message_bridge import MessageBridge
from compat_tests.kafka.message_json import message_json
from ottla.txn_coordinator.records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    TransactionRecord,
    UnknownRecordType,
    decode_record,
    encode_key,
    encode_value,
)
from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import decode, encode
from tests.wire.strategies import instances

CLASSES: list[Any] = [TransactionLogKey, TransactionLogValue]


def kafkas() -> dict[str, Any]:
    return definitions("kafka-transaction-coordinator")


def test_every_record_of_kafka_is_known() -> None:
    """Whatever a Kafka 4.3 transactions topic can hold has a class here, under Kafka's number."""
    expected = {name: definition["apiKey"] for name, definition in kafkas().items()}
    assert {cls.__name__: cls.API_KEY for cls in CLASSES} == expected


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_fields_are_kafkas(cls: Any) -> None:
    """Names, types, versions, tags and defaults are those of Kafka's definition."""
    assert differences(cls, kafkas()[cls.__name__]) == []


@pytest.mark.parametrize(
    ("cls", "version"), [(TransactionLogKey, 0), (TransactionLogValue, 0), (TransactionLogValue, 1)]
)
def test_bytes_are_kafkas(cls: Any, version: int, kafka_messages: MessageBridge) -> None:
    """Kafka writes the same bytes for the same values, and we read the same values from them."""
    java_class = f"org.apache.kafka.coordinator.transaction.generated.{cls.__name__}"

    @settings(max_examples=8)
    @given(instances(cls, version))
    def check(record: Any) -> None:
        theirs = kafka_messages.write(
            java_class, version, message_json(record, version, kafkas()[cls.__name__])
        )
        assert encode(record, version) == theirs
        assert decode(cls, version, theirs) == record

    check()


@pytest.mark.parametrize("version", [0, 1])
def test_frame_of_a_record(version: int) -> None:
    """The key starts with the type of the record, the value with its version."""
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=2,
        transaction_status=1,
        transaction_partitions=[PartitionsSchema("t", [0, 3])],
    )
    key, body = encode_key("id"), encode_value(value, version)
    assert key == bytes.fromhex("0000 0002 6964")
    assert body[:2] == bytes([0, version])
    assert decode_record(key, body) == TransactionRecord("id", value)


def test_tombstone() -> None:
    """A record without a value keeps its key."""
    assert decode_record(encode_key("id"), None) == TransactionRecord("id", None)


@pytest.mark.parametrize(("key", "value"), [(b"\0\1\0\1a", None), (b"\0\0\0\1a", b"\0\2")])
def test_records_of_a_newer_broker(key: bytes, value: bytes | None) -> None:
    """What a newer broker wrote is told apart from what nobody wrote."""
    with pytest.raises(UnknownRecordType):
        decode_record(key, value)


def test_broken_records() -> None:
    """Bytes that are no record say so."""
    with pytest.raises(MalformedMessage):
        decode_record(b"\0", None)
    with pytest.raises(MalformedMessage):
        decode_record(b"\0\0\0\1a", b"\0\1\0")
    with pytest.raises(MalformedMessage):
        decode_record(encode_key("id"), encode_value(TransactionLogValue(transaction_status=6), 1))
