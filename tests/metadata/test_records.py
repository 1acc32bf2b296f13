"""Metadata records and control records against Kafka's definitions and the bytes of its Java classes."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings

from compat_tests.kafka.definitions import Definition, definitions, differences
from compat_tests.kafka.message_bridge import MessageBridge
from compat_tests.kafka.message_json import message_json
from ottla.metadata.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from ottla.metadata.records import MetadataRecord
from ottla.metadata.voters_record import VotersRecord
from ottla.wire.schema import decode, encode
from tests.wire.strategies import instances

METADATA_RECORDS: list[Any] = list(get_args(MetadataRecord))
CONTROL_RECORDS: list[Any] = [
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    SnapshotFooterRecord,
    KRaftVersionRecord,
    VotersRecord,
]
EVERY_RECORD = pytest.mark.parametrize(
    "cls", [*METADATA_RECORDS, *CONTROL_RECORDS], ids=lambda cls: cls.__name__
)


def definition_of(cls: Any) -> tuple[Definition, str]:
    """Kafka's definition of a record, and its Java class."""
    if cls in METADATA_RECORDS:
        return definitions("kafka-metadata")[cls.__name__], f"org.apache.kafka.common.metadata.{cls.__name__}"
    return definitions()[cls.__name__], f"org.apache.kafka.common.message.{cls.__name__}"


def test_every_metadata_record_of_kafka_is_known() -> None:
    """Whatever a Kafka 4.3 log can hold has a class here, under Kafka's api key."""
    kafkas = {name: definition["apiKey"] for name, definition in definitions("kafka-metadata").items()}
    assert {cls.__name__: cls.API_KEY for cls in METADATA_RECORDS} == kafkas


@EVERY_RECORD
def test_fields_are_kafkas(cls: Any) -> None:
    """Names, types, versions, tags and defaults are those of Kafka's definition."""
    definition, _ = definition_of(cls)
    assert differences(cls, definition) == []


@pytest.mark.parametrize(
    ("cls", "version"),
    [
        pytest.param(cls, version, id=f"{cls.__name__}-v{version}")
        for cls in [*METADATA_RECORDS, *CONTROL_RECORDS]
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    ],
)
def test_bytes_are_kafkas(cls: Any, version: int, kafka_messages: MessageBridge) -> None:
    """Kafka writes the same bytes for the same values, and we read the same values from them."""
    definition, java_class = definition_of(cls)

    @settings(max_examples=8)
    @given(instances(cls, version))
    def check(record: Any) -> None:
        kafkas = kafka_messages.write(java_class, version, message_json(record, version, definition))
        assert encode(record, version) == kafkas
        assert decode(cls, version, kafkas) == record

    check()
