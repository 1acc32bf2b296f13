"""The bytes of every message in every version against those of Kafka's Java classes, in both directions."""

from typing import Any

from hypothesis import given, settings

from compat_tests.kafka.definitions import definitions
from compat_tests.kafka.message_bridge import MessageBridge
from compat_tests.kafka.message_json import message_json, without_records
from ottla.wire.schema import decode, encode
from tests.wire.catalog import every_version
from tests.wire.strategies import instances


@every_version()
def test_same_bytes_as_kafka(cls: Any, version: int, kafka_messages: MessageBridge) -> None:
    """Kafka writes the same bytes for the same values, reads the same values from ours, and we from its."""
    definition = definitions()[cls.__name__]
    java_class = f"org.apache.kafka.common.message.{cls.__name__}Data"

    @settings(max_examples=12)
    @given(instances(cls, version))
    def check(message: Any) -> None:
        ours = encode(message, version)
        expected = message_json(message, version, definition)
        kafkas = kafka_messages.write(java_class, version, expected)
        assert ours == kafkas
        assert decode(cls, version, kafkas) == message
        read_by_kafka, written_again, left = kafka_messages.read(java_class, version, ours)
        assert without_records(read_by_kafka) == without_records(expected)
        assert written_again == ours
        assert left == 0

    check()
