"""Records of `__share_group_state` to bytes and back."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.group_coordinator.records.frame import UnknownRecordType
from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    Message,
    array,
    decode,
    encode,
    field,
    record,
    structure,
)
from ottla.wire.uuids import Uuid


@structure
class StateBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_state: int = field(INT8)
    delivery_count: int = field(INT16)


@record(api_key=0, versions=(0, 0))
class ShareSnapshotKey(Message):
    group_id: str = field(STRING, "0")
    topic_id: Uuid = field(UUID, "0")
    partition: int = field(INT32, "0")


@record(api_key=0, versions=(0, 0), flexible=0)
class ShareSnapshotValue(Message):
    snapshot_epoch: int = field(INT32)
    state_epoch: int = field(INT32)
    leader_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    delivery_complete_count: int = field(INT32, tag=0, default=-1)
    create_timestamp: int = field(INT64)
    write_timestamp: int = field(INT64)
    state_batches: list[StateBatch] = array(StateBatch)


@record(api_key=1, versions=(0, 0))
class ShareUpdateKey(Message):
    group_id: str = field(STRING, "0")
    topic_id: Uuid = field(UUID, "0")
    partition: int = field(INT32, "0")


@record(api_key=1, versions=(0, 0), flexible=0)
class ShareUpdateValue(Message):
    snapshot_epoch: int = field(INT32)
    leader_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    delivery_complete_count: int = field(INT32, tag=0, default=-1)
    state_batches: list[StateBatch] = array(StateBatch)


SHARE_RECORD_TYPES: dict[int, tuple[type[Message], type[Message]]] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}
"""The class of the key and of the value by the type that a key starts with."""


class ShareStateRecord(NamedTuple):
    """One record of `__share_group_state`; without a value it removes what the key names."""

    key: ShareSnapshotKey | ShareUpdateKey
    value: ShareSnapshotValue | ShareUpdateValue | None


def encode_share_record(record: ShareStateRecord) -> tuple[bytes, bytes | None]:
    """Key and value; each begins with two bytes, the type and the version."""
    key = record.key.API_KEY.to_bytes(2, "big") + encode(record.key, 0)
    return key, None if record.value is None else b"\0\0" + encode(record.value, 0)


def decode_share_record(key: bytes | memoryview, value: bytes | memoryview | None) -> ShareStateRecord:
    """The record of these bytes; UnknownRecordType, or MalformedMessage when they are none."""
    classes = SHARE_RECORD_TYPES.get(_leading_int16(key))
    if classes is None:
        raise UnknownRecordType(f"record type {_leading_int16(key)}")
    decoded_key: Any = decode(classes[0], 0, key[2:])
    if value is None:
        return ShareStateRecord(decoded_key, None)
    decoded_value: Any = decode(classes[1], _leading_int16(value), value[2:])
    return ShareStateRecord(decoded_key, decoded_value)


def _leading_int16(data: bytes | memoryview) -> int:
    if len(data) < 2:
        raise MalformedMessage("a key or value of less than two bytes")
    return int.from_bytes(data[:2], "big", signed=True)
