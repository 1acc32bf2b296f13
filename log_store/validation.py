"""What a batch must fulfil before it is appended: the rules of Kafka's LogValidator, by the header alone.

For a client: exactly one batch, magic 2, numbered from 0, not larger than max.message.bytes, its CRC right,
a codec that exists, as many records as its offsets say (for an uncompressed batch the lengths of the records
are walked), no control batch, a sequence if it has a producer id, timestamps within the bounds of
message.timestamp.before/after.max.ms. Records are decoded only where a rule asks for something the header
does not tell: keys on a compacted topic, a bound on old timestamps, and to say which record broke a rule.

Differs from Kafka: a compressed payload is not opened, so the greatest timestamp in the header is believed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import crc32c

from ottla.config.topic_config import TopicConfig
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.compression import Codec, compress, decompress
from ottla.wire.records.header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CREATE_TIME,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchView,
    CorruptBatch,
    batch_size_at,
    patch_timestamp,
)
from ottla.wire.records.records import Record, count_is_possible, count_matches, iter_records

FOREVER_MS = (1 << 63) - 1

# What is opened in order to append it: a batch of a megabyte may decompress to gigabytes, or to millions of
# records, while every other client waits.
MAX_OPENED_BYTES = 128 * 1024 * 1024
MAX_OPENED_RECORDS = 250_000
MAX_RECORD_ERRORS = 10_000

_CODEC_OF_CONFIG = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class AppendOrigin(Enum):
    """Who wants to append."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"
    RAFT_LEADER = "raft leader"


class RecordError(NamedTuple):
    """A record that broke a rule: its place in the batch, and the rule."""

    batch_index: int
    message: str


class InvalidRecords(KafkaError):
    """A batch refused because of some of its records."""

    def __init__(self, code: ErrorCode, detail: str, record_errors: list[RecordError]) -> None:
        super().__init__(code, detail)
        self.record_errors = record_errors[:MAX_RECORD_ERRORS]


class AppendRules:
    """The rules of one topic config, made once so that a batch is checked against plain numbers."""

    __slots__ = (
        "after_max_ms",
        "append_time",
        "before_max_ms",
        "level",
        "max_message_bytes",
        "needs_keys",
        "target_codec",
    )

    def __init__(self, config: TopicConfig) -> None:
        self.max_message_bytes = config.max_message_bytes
        self.append_time = config.uses_log_append_time
        self.before_max_ms = config.message_timestamp_before_max_ms
        self.after_max_ms = config.message_timestamp_after_max_ms
        self.needs_keys = config.is_compacted
        self.target_codec: int | None = _CODEC_OF_CONFIG.get(config.compression_type)
        self.level: int | None = (
            {
                Codec.GZIP: config.compression_gzip_level,
                Codec.LZ4: config.compression_lz4_level,
                Codec.ZSTD: config.compression_zstd_level,
            }.get(Codec(self.target_codec))
            if self.target_codec is not None
            else None
        )


@lru_cache(maxsize=256)
def rules_of(config: TopicConfig) -> AppendRules:
    """The rules of a config, shared by all partitions that have it."""
    return AppendRules(config)


def client_batch(records: memoryview) -> BatchView:
    """The one batch of a Produce request for a partition. Bytes behind it that are no whole batch are left
    out, as Kafka does."""
    end = len(records)
    size = batch_size_at(records, 0, end)
    if size == 0 or size > end:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A partition must be sent at least one record batch.")
    if size != end:
        next_size = batch_size_at(records, size, end)
        if next_size and next_size <= end - size:
            raise KafkaError(ErrorCode.INVALID_RECORD, "A partition must be sent exactly one record batch.")
    return BatchView(records)


def check_batch(batch: BatchView, rules: AppendRules) -> None:
    """What holds for every batch that comes from outside: size and checksum."""
    size = batch.batch_length + LOG_OVERHEAD
    if size > rules.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The batch has {size} bytes, more than max.message.bytes={rules.max_message_bytes}.",
        )
    check_crc(batch)


def check_crc(batch: BatchView) -> None:
    if not batch.crc_matches():
        raise CorruptBatch(f"The batch is corrupt: its stored CRC {batch.crc} is not that of its bytes.")


def check_client_batch(batch: BatchView, rules: AppendRules, now_ms: int) -> None:
    """All rules for a batch of a client, in the order in which Kafka looks at them."""
    if batch.base_offset != 0:
        raise _invalid(f"The base offset must be 0, not {batch.base_offset}.")
    check_batch(batch, rules)
    count = batch.records_count
    if batch.last_offset_delta < 0 or count <= 0 or count != batch.last_offset_delta + 1:
        raise _invalid(
            f"The batch counts {count} records, but its offsets reach from 0 to {batch.last_offset_delta}."
        )
    attributes = batch.attributes
    if attributes & 0x20:
        raise _invalid("Clients must not write control records.")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise _invalid(f"Sequence {batch.base_sequence} of producer {batch.producer_id} is negative.")
    codec = attributes & CODEC_MASK
    if codec == 0:
        if not count_matches(batch):
            raise _invalid(f"The batch does not hold exactly the {count} records that it counts.")
    elif codec > Codec.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression codec {codec}.")
    elif not count_is_possible(batch):
        raise _invalid(f"The batch counts {count} records, more than its bytes can hold.")
    if rules.append_time:
        if attributes & 0x08:
            _refuse_every_record(batch)
    elif (
        batch.max_timestamp - now_ms > rules.after_max_ms
        or rules.before_max_ms != FOREVER_MS
        or (attributes & 0x08 and batch.max_timestamp == NO_TIMESTAMP)
    ):
        check_timestamps(batch, rules, now_ms)
    if rules.needs_keys:
        check_keys(batch)


def check_timestamps(batch: BatchView, rules: AppendRules, now_ms: int) -> None:
    """INVALID_TIMESTAMP if a record's own time is too far from the clock."""
    errors = []
    for index, record in enumerate(_opened(batch)):
        timestamp = record.timestamp
        if timestamp == NO_TIMESTAMP:
            if batch.timestamp_type == LOG_APPEND_TIME:
                errors.append(RecordError(index, "Producers must not set the type LogAppendTime."))
        elif now_ms - timestamp > rules.before_max_ms or timestamp - now_ms > rules.after_max_ms:
            earliest, latest = now_ms - rules.before_max_ms, now_ms + rules.after_max_ms
            errors.append(
                RecordError(index, f"Timestamp {timestamp} is out of the range [{earliest}, {latest}].")
            )
    if errors:
        raise InvalidRecords(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            errors,
        )


def check_keys(batch: BatchView) -> None:
    """INVALID_RECORD if a record has no key where compaction will need one."""
    errors = [
        RecordError(index, "A compacted topic cannot accept a record without a key.")
        for index, record in enumerate(_opened(batch))
        if record.key is None
    ]
    if errors:
        raise InvalidRecords(
            ErrorCode.INVALID_RECORD,
            f"{len(errors)} records have no key, which a compacted topic needs.",
            errors,
        )


def _opened(batch: BatchView) -> Iterator[Record]:
    if batch.records_count > MAX_OPENED_RECORDS:
        raise _invalid(
            f"This topic looks at every record, and does so for {MAX_OPENED_RECORDS} in a batch at most; "
            f"this one counts {batch.records_count}."
        )
    return iter_records(batch, max_batch_bytes=MAX_OPENED_BYTES)


def stamp(batch: BatchView, rules: AppendRules, now_ms: int) -> int:
    """Make the batch's timestamp type that of the topic, in place; returns its greatest timestamp."""
    if rules.append_time:
        patch_timestamp(batch.buf, batch.pos, LOG_APPEND_TIME, now_ms)
        return now_ms
    if batch.attributes & 0x08:
        patch_timestamp(batch.buf, batch.pos, CREATE_TIME, batch.max_timestamp)
    return batch.max_timestamp


def recompress(batch: BatchView, codec: int, level: int | None, max_bytes: int) -> BatchView:
    """The same batch with its records compressed by `codec`, as compression.type asks."""
    records = decompress(batch.codec, batch.payload, MAX_OPENED_BYTES)
    payload = compress(codec, records, level)
    data = bytearray(batch.data[:HEADER_SIZE]) + payload
    if len(data) > max_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"Compressed as the topic asks the batch has {len(data)} bytes, more than {max_bytes}.",
        )
    attributes = batch.attributes & ~CODEC_MASK | codec
    struct.pack_into(">i", data, 8, len(data) - LOG_OVERHEAD)
    struct.pack_into(">h", data, ATTRIBUTES_POSITION, attributes)
    struct.pack_into(">I", data, 17, crc32c.crc32c(memoryview(data)[ATTRIBUTES_POSITION:]))
    return BatchView(memoryview(data))


def _refuse_every_record(batch: BatchView) -> None:
    message = "Producers must not set the type LogAppendTime."
    raise InvalidRecords(
        ErrorCode.INVALID_TIMESTAMP,
        "One or more records have been rejected due to invalid timestamp",
        [RecordError(index, message) for index in range(min(batch.records_count, 100))],
    )


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, detail)
