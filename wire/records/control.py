"""Control records: what brokers and controllers write into a log for each other (KIP-98, KIP-595).

The key of each is int16 version (0) and int16 type. The value of an end-of-transaction marker is int16
version (0) and int32 coordinator_epoch; the values of the KRaft types are messages of the metadata room.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from ottla.wire.records.builder import build_batch
from ottla.wire.records.records import InvalidRecord, Record

_KEY = struct.Struct(">hh")
_END_TXN_MARKER = struct.Struct(">hi")


class ControlType(IntEnum):
    """The type in a control record's key; readers pass over those they do not know."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def control_key(control_type: ControlType) -> bytes:
    return _KEY.pack(0, control_type)


def control_type_of(record: Record) -> int:
    """The type number of a control record, which need not be one of ControlType."""
    key = record.key
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord("a control record whose key is too short")
    version, control_type = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"a control record of version {version}")
    return int(control_type)


def coordinator_epoch_of(record: Record) -> int:
    """The coordinator epoch in an ABORT or COMMIT marker."""
    value = record.value
    if value is None or len(value) < _END_TXN_MARKER.size:
        raise InvalidRecord("an end-of-transaction marker whose value is too short")
    version, epoch = _END_TXN_MARKER.unpack_from(value)
    if version < 0:
        raise InvalidRecord(f"an end-of-transaction marker of version {version}")
    return int(epoch)


def build_control_batch(
    control_type: ControlType,
    value: bytes,
    *,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> bytes:
    """A batch of one control record that belongs to no producer."""
    return build_batch(
        [Record(base_offset, timestamp, control_key(control_type), value)],
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        is_control=True,
    )


def build_end_txn_marker(
    control_type: ControlType,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    base_offset: int = 0,
) -> bytes:
    """The batch that ends a transaction in a partition: ABORT or COMMIT."""
    value = _END_TXN_MARKER.pack(0, coordinator_epoch)
    return build_batch(
        [Record(base_offset, timestamp, control_key(control_type), value)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
