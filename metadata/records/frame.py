"""The framing of a metadata record in a record batch's value.

unsigned varint frame version (always 1), unsigned varint api key, unsigned varint record version, body.
Each record is written in the version that Kafka's controller would write under the metadata.version in force;
a reader takes any version of the record.
"""

from typing import Any, get_args

from ottla.metadata import features
from ottla.metadata.errors import MetadataError
from ottla.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import Chunk, decoder, encoder

FRAME_VERSION = 1

RECORD_CLASSES: dict[int, type[Any]] = {cls.API_KEY: cls for cls in get_args(MetadataRecord)}


def encode_record(record: MetadataRecord, metadata_version: int) -> bytes:
    """The framed value of `record`, as a log at `metadata_version` may hold it."""
    version = version_to_write(record, metadata_version)
    chunks: list[Chunk] = [bytes((FRAME_VERSION, RECORD_CLASSES_KEYS[type(record)], version))]
    encoder(type(record), version)(record, chunks)
    return b"".join(chunks)  # type: ignore[arg-type]


def decode_record(value: bytes | memoryview) -> MetadataRecord:
    """The record in a framed value; MetadataError if the frame or key is none that Kafka 4.3 writes."""
    view = memoryview(value)
    try:
        frame_version, position = _read_unsigned_varint(view, 0)
        if frame_version != FRAME_VERSION:
            raise MetadataError(f"A metadata record has frame version {frame_version}, but only 1 is known.")
        api_key, position = _read_unsigned_varint(view, position)
        version, position = _read_unsigned_varint(view, position)
        cls = RECORD_CLASSES.get(api_key)
        if cls is None:
            raise MetadataError(f"The metadata log holds a record of unknown type {api_key}.")
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise MetadataError(f"The metadata log holds a {cls.__name__} of unknown version {version}.")
        record, end = decoder(cls, version)(view, position)
    except MalformedMessage as error:
        raise MetadataError(f"The metadata log holds a record that cannot be read: {error}.") from error
    if end != len(view):
        raise MetadataError(f"A {cls.__name__} is followed by {len(view) - end} stray bytes.")
    decoded: MetadataRecord = record
    return decoded


def version_to_write(record: MetadataRecord, metadata_version: int) -> int:
    """The version of `record` that Kafka's controller would write at `metadata_version`."""
    match record:
        case PartitionRecord() | PartitionChangeRecord():
            return features.partition_version(metadata_version)
        case RegisterBrokerRecord():
            return features.register_broker_version(metadata_version)
        case BrokerRegistrationChangeRecord():
            if record.cordoned_log_dirs is not None:
                return 3
            if record.log_dirs:
                return 2
            return 1 if record.in_controlled_shutdown else 0
        case _:
            return 0


RECORD_CLASSES_KEYS: dict[type[Any], int] = {cls: key for key, cls in RECORD_CLASSES.items()}


def _read_unsigned_varint(view: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if position >= len(view):
            raise MetadataError("A metadata record ends inside its frame.")
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise MetadataError("A metadata record's frame holds a number that is too long.")
