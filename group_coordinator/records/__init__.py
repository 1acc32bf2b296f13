"""What `__consumer_offsets` holds: keys and values in Apache Kafka's own formats.

A record is a key with a value, or with none: then it removes what the key names. On disk a key is two bytes
that say the type of the record, then the body; a value is two bytes that say its version, then the body in
that version.
"""

from ottla.group_coordinator.records.frame import (
    CoordinatorRecord,
    UnknownRecordType,
    decode_record,
    encode_key,
    encode_value,
    tombstone,
)

__all__ = [
    "CoordinatorRecord",
    "UnknownRecordType",
    "decode_record",
    "encode_key",
    "encode_value",
    "tombstone",
]
