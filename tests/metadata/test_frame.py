"""The framing of metadata records: what is written at which metadata.version, and what cannot be read."""

import pytest

from ottla.metadata.errors import MetadataError
from ottla.metadata.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from ottla.metadata.records.frame import decode_record, encode_record

TOPIC_ID = bytes(range(16))


def test_frame_is_version_key_and_record_version() -> None:
    """The bytes of a feature level, as `kafka-storage format` writes it."""
    written = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=30), 30)
    assert written == b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00"
    assert decode_record(written) == FeatureLevelRecord(name="metadata.version", feature_level=30)


@pytest.mark.parametrize(
    ("record", "level", "version"),
    [
        (PartitionRecord(topic_id=TOPIC_ID), 30, 2),
        (PartitionRecord(topic_id=TOPIC_ID), 22, 1),
        (PartitionRecord(topic_id=TOPIC_ID), 7, 0),
        (PartitionChangeRecord(topic_id=TOPIC_ID), 23, 2),
        (RegisterBrokerRecord(), 30, 4),
        (RegisterBrokerRecord(), 17, 3),
        (RegisterBrokerRecord(), 8, 2),
        (RegisterBrokerRecord(), 7, 1),
        (BrokerRegistrationChangeRecord(fenced=1), 30, 0),
        (BrokerRegistrationChangeRecord(in_controlled_shutdown=1), 30, 1),
        (BrokerRegistrationChangeRecord(log_dirs=[TOPIC_ID]), 30, 2),
        (BrokerRegistrationChangeRecord(cordoned_log_dirs=[]), 30, 3),
        (TopicRecord(name="t"), 30, 0),
    ],
)
def test_version_fits_the_metadata_version(record: MetadataRecord, level: int, version: int) -> None:
    """Each record is written in the version that Kafka's controller would write."""
    written = encode_record(record, level)
    assert written[2] == version
    assert decode_record(written) == record


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"", "ends inside its frame"),
        (b"\x01", "ends inside its frame"),
        (b"\x00\x02\x00", "frame version 0"),
        (b"\x01\x63\x00", "unknown type 99"),
        (b"\x01\x02\x05", "TopicRecord of unknown version 5"),
        (b"\x01\x02\x00\x09abc", "cannot be read"),
        (b"\x01\xff\xff\xff\xff\xff\xff", "number that is too long"),
        (encode_record(NoOpRecord(), 30) + b"x", "1 stray bytes"),
    ],
)
def test_unreadable_records_are_named(value: bytes, words: str) -> None:
    """A record that Kafka 4.3 cannot have written is refused with a sentence."""
    with pytest.raises(MetadataError, match=words):
        decode_record(value)
