"""What a client's batch must fulfil before it is appended: the rules of Kafka's LogValidator.

Exactly one batch, magic 2, numbered from 0, not larger than max.message.bytes, its CRC right, a codec that exists, as
many records as its offsets say, no control batch, a sequence if it has a producer id. Then the records, decompressed
if need be and within bounds: they must fill the batch, be numbered in a compressed one, have keys on a compacted
topic and timestamps within message.timestamp.before/after.max.ms; and the greatest timestamp in the header is made
theirs.

Batches are read record by record, as Kafka reads them, where that is compiled (ottla.native). Where it is not, so are
small batches; of larger ones the lengths are followed and the first and the last record are read, unless the topic asks
for something of every record (ADR 6). `is_costly` says which batches to give to a worker thread;
`prepare_client_batch` touches no state and can run there.
"""

from __future__ import annotations

import struct
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from ottla.config.topic_config import TopicConfig
from ottla.native import speed
from ottla.wire.crc import crc32c
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.builder import build_batch, with_offsets
from ottla.wire.records.compression import Codec, compress
from ottla.wire.records.header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    COUNT_POSITION,
    CREATE_TIME,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchView,
    CorruptBatch,
    batch_size_at,
    patch_timestamp,
)
from ottla.wire.records.records import count_is_possible, iter_records
from ottla.wire.records.scan import RecordScan, glance_at_records, scan_records
from ottla.wire.records.unpacking import Scratch, Unpacked, put_back, take_scratch

FOREVER_MS = (1 << 63) - 1

# What is opened in order to append it: a batch of a megabyte may decompress to gigabytes, or to millions of
# records, while every other client waits.
MAX_OPENED_BYTES = 128 * 1024 * 1024
MAX_OPENED_RECORDS = 250_000
MAX_RECORD_ERRORS = 10_000

# What keeps the event loop for less than a millisecond or two is done there: a worker thread costs half a millisecond
# of its own, more than to unpack most batches.
CHEAP_BYTES = 16 * 1024  # whatever has to be done with them
CHEAP_OPENED_BYTES = 1024 * 1024
CHEAP_RECORDS_TO_PASS = 20_000 if speed is None else 200_000
CHEAP_RECORDS_TO_READ = 2_000
FULLY_READ_RECORDS = 8
_CHEAP_BYTES_OF_CODEC: dict[int, int] = {Codec.GZIP: 128 * 1024, Codec.ZSTD: 256 * 1024}

_unpack_count = struct.Struct(">i").unpack_from

_KEPT_ATTRIBUTES = TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT  # by a batch that is written anew

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


class CostlyBatch(Exception):
    """A batch that looks small but is not: to be prepared in a worker thread."""


class AppendRules:
    """The rules of one topic config, made once so that a batch is checked against plain numbers."""

    __slots__ = (
        "after_max_ms",
        "append_time",
        "before_max_ms",
        "keeps_usual_batches",
        "level",
        "looks_at_every_record",
        "max_message_bytes",
        "needs_keys",
        "takes_batches_as_they_are",
        "target_codec",
    )

    def __init__(self, config: TopicConfig) -> None:
        self.max_message_bytes = config.max_message_bytes
        self.append_time = config.uses_log_append_time
        self.before_max_ms = config.message_timestamp_before_max_ms
        self.after_max_ms = config.message_timestamp_after_max_ms
        self.needs_keys = config.is_compacted
        self.target_codec: int | None = _CODEC_OF_CONFIG.get(config.compression_type)
        self.takes_batches_as_they_are = not self.append_time and not self.target_codec
        # What Kafka does for every topic; here the rules that a header cannot answer for.
        self.looks_at_every_record = (
            self.needs_keys or self.target_codec is not None or self.before_max_ms != FOREVER_MS
        )
        # Whether an uncompressed batch that breaks no rule is stored as it came.
        self.keeps_usual_batches = not self.append_time and self.target_codec in (None, Codec.NONE)
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


def is_costly(records: memoryview, rules: AppendRules) -> bool:
    """Whether to prepare a batch in a worker thread: it would keep the event loop for more than a moment."""
    size = len(records)
    if size <= CHEAP_BYTES:
        return False
    must_read = rules.looks_at_every_record if speed is None else rules.target_codec is not None
    if must_read or _unpack_count(records, COUNT_POSITION)[0] > CHEAP_RECORDS_TO_PASS:
        return True
    codec = records[ATTRIBUTES_POSITION + 1] & CODEC_MASK
    return codec != Codec.NONE and size > _CHEAP_BYTES_OF_CODEC.get(codec, CHEAP_OPENED_BYTES)


def prepare_client_batch(
    records: memoryview, rules: AppendRules, now_ms: int, *, may_take_long: bool = True
) -> BatchView:
    """The batch that may be appended if its producer may append it: checked, and changed as the topic asks.

    It is the one in `records` where that can stay as it is or be changed in place. CostlyBatch if it turns out to take
    long, and may not.
    """
    if (
        speed is not None
        and rules.keeps_usual_batches
        and speed.is_usual_batch(
            records,
            rules.max_message_bytes,
            now_ms - rules.before_max_ms,
            min(now_ms + rules.after_max_ms, FOREVER_MS),
            rules.needs_keys,
        )
    ):
        batch = BatchView(records)
        if batch.crc_matches():
            return batch
    batch = client_batch(records)
    _check_header(batch, rules)
    count = batch.records_count
    if count > MAX_OPENED_RECORDS and rules.looks_at_every_record:
        raise _invalid(
            f"This topic looks at every record, and does so for {MAX_OPENED_RECORDS} in a batch at most; "
            f"this one counts {count}."
        )
    codec = batch.attributes & CODEC_MASK
    if not codec:
        contents = batch.payload
        return _prepare(batch, (contents, len(contents)), rules, now_ms, may_take_long)
    scratch = take_scratch()
    try:
        unpacked = _unpack(batch, scratch, may_take_long)
        return _prepare(batch, unpacked, rules, now_ms, may_take_long)
    finally:
        put_back(scratch)


def _prepare(
    batch: BatchView, unpacked: Unpacked, rules: AppendRules, now_ms: int, may_take_long: bool
) -> BatchView:
    """Check and change the batch whose records have been unpacked."""
    contents, end = unpacked
    count = batch.records_count
    codec = batch.attributes & CODEC_MASK
    if speed is not None or count <= FULLY_READ_RECORDS or rules.looks_at_every_record:
        scan = scan_records(contents, end, count)
    else:
        scan = glance_at_records(contents, end, count)
        if batch.base_timestamp + scan.greatest_timestamp_delta > batch.max_timestamp:
            if count > CHEAP_RECORDS_TO_READ and not may_take_long:
                raise CostlyBatch
            scan = scan_records(contents, end, count)  # the header lies; find out how much
        elif batch.timestamp_type == CREATE_TIME:
            scan = scan._replace(greatest_timestamp_delta=batch.max_timestamp - batch.base_timestamp)
    if _has_wrong_records(batch, scan, rules, now_ms):
        if count > CHEAP_RECORDS_TO_READ and not may_take_long:
            raise CostlyBatch
        _refuse_records(batch, rules, now_ms)
    _check_time_range(batch, scan, rules)
    if rules.target_codec is not None and rules.target_codec != codec:
        return _recompress(batch, memoryview(contents)[:end], scan, rules)
    if codec and not scan.is_numbered:
        raise _invalid("The offsets of the records in a compressed batch must be numbered from 0.")
    return batch if rules.append_time else _with_greatest_timestamp(batch, scan)


def _check_header(batch: BatchView, rules: AppendRules) -> None:
    """The rules for a header, in the order in which Kafka looks at them."""
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
    if codec > Codec.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression codec {codec}.")
    if codec and not count_is_possible(batch):
        raise _invalid(f"The batch counts {count} records, more than its bytes can hold.")


def _unpack(batch: BatchView, scratch: Scratch, may_take_long: bool) -> Unpacked:
    """INVALID_RECORD where the stream is broken: its checksum is right, so that sending it again is of no use."""
    max_bytes = MAX_OPENED_BYTES if may_take_long else CHEAP_OPENED_BYTES
    try:
        return scratch.unpack(batch.codec, batch.payload, max_bytes)
    except CorruptBatch as error:
        raise _invalid(f"The records cannot be decompressed: {error.detail}.") from None
    except KafkaError as error:
        if error.code is ErrorCode.MESSAGE_TOO_LARGE and not may_take_long:
            raise CostlyBatch from None
        raise


def _has_wrong_records(batch: BatchView, scan: RecordScan, rules: AppendRules, now_ms: int) -> bool:
    """Whether a record may break a rule, going by the numbers of the scan."""
    if rules.needs_keys and scan.keyless:
        return True
    if batch.attributes & TIMESTAMP_TYPE_BIT:  # every record has the time of the header
        if rules.append_time or batch.max_timestamp == NO_TIMESTAMP:
            return True
        least = greatest = batch.max_timestamp
    else:
        least = batch.base_timestamp + scan.least_timestamp_delta
        greatest = batch.base_timestamp + scan.greatest_timestamp_delta
    return not rules.append_time and (
        greatest - now_ms > rules.after_max_ms or now_ms - least > rules.before_max_ms
    )


def _check_time_range(batch: BatchView, scan: RecordScan, rules: AppendRules) -> None:
    if rules.append_time or batch.attributes & TIMESTAMP_TYPE_BIT:
        return
    least = batch.base_timestamp + scan.least_timestamp_delta
    greatest = batch.base_timestamp + scan.greatest_timestamp_delta
    if greatest > FOREVER_MS or least < -FOREVER_MS - 1:
        raise _invalid("A timestamp is out of the range of 64 bits.")


def _refuse_records(batch: BatchView, rules: AppendRules, now_ms: int) -> None:
    """InvalidRecords with every record that breaks a rule; nothing if none does after all, as when the header claims a
    time that no record has, or records have no time."""
    errors = []
    code = ErrorCode.INVALID_RECORD
    for index, record in enumerate(iter_records(batch, max_batch_bytes=MAX_OPENED_BYTES)):
        if rules.needs_keys and record.key is None:
            errors.append(RecordError(index, "A compacted topic cannot accept a record without a key."))
            continue
        why = _wrong_time(record.timestamp, batch, rules, now_ms)
        if why is not None:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append(RecordError(index, why))
    if errors:
        detail = (
            "One or more records have been rejected due to invalid timestamp"
            if code is ErrorCode.INVALID_TIMESTAMP
            else f"{len(errors)} records have no key, which a compacted topic needs."
        )
        raise InvalidRecords(code, detail, errors)


def _wrong_time(timestamp: int, batch: BatchView, rules: AppendRules, now_ms: int) -> str | None:
    if not rules.append_time and timestamp != NO_TIMESTAMP:
        if now_ms - timestamp > rules.before_max_ms or timestamp - now_ms > rules.after_max_ms:
            earliest, latest = now_ms - rules.before_max_ms, now_ms + rules.after_max_ms
            return f"Timestamp {timestamp} is out of the range [{earliest}, {latest}]."
    elif batch.timestamp_type == LOG_APPEND_TIME:
        return "Producers must not set the type LogAppendTime."
    return None


def _with_greatest_timestamp(batch: BatchView, scan: RecordScan) -> BatchView:
    """The batch with the greatest timestamp of its records in the header, as Kafka puts it there."""
    if batch.attributes & 0x08:
        return batch
    greatest = max(NO_TIMESTAMP, batch.base_timestamp + scan.greatest_timestamp_delta)
    if greatest == batch.max_timestamp:
        return batch
    if batch.buf.readonly:
        batch = BatchView(memoryview(bytearray(batch.data)))
    patch_timestamp(batch.buf, batch.pos, CREATE_TIME, greatest)
    return BatchView(batch.buf, batch.pos)


def stamp(batch: BatchView, rules: AppendRules, now_ms: int) -> int:
    """Make the batch's timestamp type that of the topic, in place; returns its greatest timestamp."""
    if rules.append_time:
        patch_timestamp(batch.buf, batch.pos, LOG_APPEND_TIME, now_ms)
        return now_ms
    if batch.attributes & 0x08:
        patch_timestamp(batch.buf, batch.pos, CREATE_TIME, batch.max_timestamp)
    return batch.max_timestamp


def _recompress(batch: BatchView, contents: memoryview, scan: RecordScan, rules: AppendRules) -> BatchView:
    """The same batch with its records compressed as compression.type asks."""
    codec = rules.target_codec or Codec.NONE
    if not rules.append_time:
        batch = _with_greatest_timestamp(batch, scan)
    if scan.is_numbered and not scan.first_timestamp_delta:
        data = bytearray(batch.data[:HEADER_SIZE]) + compress(codec, contents, rules.level)
    else:  # Kafka writes the records anew, numbered, with the time of the first one as the base
        data = bytearray(_rebuilt(batch, codec, rules.level))
    if len(data) > rules.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"Compressed as the topic asks the batch has {len(data)} bytes, more than {rules.max_message_bytes}.",
        )
    attributes = batch.attributes & _KEPT_ATTRIBUTES | codec
    struct.pack_into(">i", data, 8, len(data) - LOG_OVERHEAD)
    struct.pack_into(">h", data, ATTRIBUTES_POSITION, attributes)
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[ATTRIBUTES_POSITION:]))
    return BatchView(memoryview(data))


def _rebuilt(batch: BatchView, codec: int, level: int | None) -> bytes:
    records = with_offsets(list(iter_records(batch, max_batch_bytes=MAX_OPENED_BYTES)))
    return build_batch(
        records,
        codec=codec,
        level=level,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        timestamp_type=batch.timestamp_type,
        append_time_ms=batch.max_timestamp,
    )


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, detail)
