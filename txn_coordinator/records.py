"""What `__transaction_state` holds: one kind of record, a transactional id and the whole state of its transaction.

On disk a key is two bytes that say the type of the record (0, there is no other), then the body; a value is two
bytes that say its version, then the body in that version. A key without a value removes the id.

Version 0 is what every Kafka reads. Version 1 is flexible and is written when transaction.version is 1 or more; its
tagged fields carry what transactions V2 need (KIP-890): the producer id before and after a change of id, and the
version of transactions that the client speaks. `next_producer_epoch` belongs to two-phase commit (KIP-939), which
Kafka 4.3 does not serve.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    array,
    decode,
    encode,
    field,
    record,
    structure,
)

_RECORD_TYPE = 0
_LAST_STATUS = 5  # the states behind it are never written


@record(api_key=_RECORD_TYPE, versions=(0, 0))
class TransactionLogKey(Message):
    transactional_id: str = field(STRING, "0")


@structure
class PartitionsSchema:
    topic: str = field(STRING)
    partition_ids: list[int] = array(INT32)


@record(api_key=_RECORD_TYPE, versions=(0, 1), flexible=1)
class TransactionLogValue(Message):
    producer_id: int = field(INT64)
    previous_producer_id: int = field(INT64, "1+", tag=0, default=-1)
    next_producer_id: int = field(INT64, "1+", tag=1, default=-1)
    producer_epoch: int = field(INT16)
    next_producer_epoch: int = field(INT16, "1+", tag=3, default=-1)
    transaction_timeout_ms: int = field(INT32)
    transaction_status: int = field(INT8)
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = field(INT64)
    transaction_start_timestamp_ms: int = field(INT64)
    client_transaction_version: int = field(INT16, "1+", tag=2)


class TransactionRecord(NamedTuple):
    """One record of `__transaction_state`; without a value it removes the transactional id."""

    transactional_id: str
    value: TransactionLogValue | None


class UnknownRecordType(Exception):
    """A key or value that Kafka 4.3 does not have; a newer broker wrote it."""


def encode_key(transactional_id: str) -> bytes:
    return b"\0\0" + encode(TransactionLogKey(transactional_id), 0)


def encode_value(value: TransactionLogValue, version: int) -> bytes:
    return version.to_bytes(2, "big") + encode(value, version)


def decode_record(key: bytes | memoryview, value: bytes | memoryview | None) -> TransactionRecord:
    """The record of these bytes; UnknownRecordType, or MalformedMessage when they are none."""
    if _leading_int16(key) != _RECORD_TYPE:
        raise UnknownRecordType(f"record type {_leading_int16(key)}")
    transactional_id = decode(TransactionLogKey, 0, key[2:]).transactional_id
    if value is None:
        return TransactionRecord(transactional_id, None)
    version = _leading_int16(value)
    if not TransactionLogValue.MIN_VERSION <= version <= TransactionLogValue.MAX_VERSION:
        raise UnknownRecordType(f"value version {version}")
    decoded = decode(TransactionLogValue, version, value[2:])
    if not 0 <= decoded.transaction_status <= _LAST_STATUS:
        raise MalformedMessage(f"transaction status {decoded.transaction_status}")
    return TransactionRecord(transactional_id, decoded)


def _leading_int16(data: bytes | memoryview) -> int:
    if len(data) < 2:
        raise MalformedMessage("a key or value of less than two bytes")
    return int.from_bytes(data[:2], "big", signed=True)
