"""Batches whose records are not what the header says: both brokers take the same, store the same and refuse the same.

Kafka answers some of them with UNKNOWN_SERVER_ERROR, after which a Java client gives up its idempotence; Ottla says
INVALID_RECORD then. And it follows the lengths of records in compressed batches, which Kafka does in others only.
"""

import time
import zlib
from typing import Any

import pytest

from compat_tests.bad_records import CASES, GOOD, BadRecords, record
from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.real import RealKafka
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, fetch_records
from compat_tests.test_raw_list_offsets import MAX_TIMESTAMP, look_up
from compat_tests.test_raw_produce import produce
from ottla.wire.errors import ErrorCode
from ottla.wire.records import Codec, Record, build_batch, iter_positions
from ottla.wire.records.header import BatchView, split_batches

NONE = "NONE"
INVALID = "INVALID_RECORD"
TIME = "INVALID_TIMESTAMP"

TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "append time": {"message_timestamp_type": "LogAppendTime"},
    "compacted": {"cleanup_policy": "compact"},
    "gzip": {"compression_type": "gzip"},
    "uncompressed": {"compression_type": "uncompressed"},
    "narrow": {"message_timestamp_before_max_ms": "600000", "message_timestamp_after_max_ms": "600000"},
}
TARGETS = {"gzip": Codec.GZIP, "uncompressed": Codec.NONE}

NUMBERING = {name for name in CASES if "delta" in name}
BROKEN = {
    "one more counted",
    "one less counted",
    "none there",
    "bytes behind the records",
    "zeros behind the records",
    "payload cut",
    "payload is noise",
    "payload is empty",
    "record length 0",
    "record with a tail",
    "key too long",
    "negative headers count",
    "headers not there",
    "a million headers",
    "header key null",
    "long varint",
}
LENGTHS = {
    "negative record length",
    "record too long",
    "record length over 2 GiB",
    "record length 1 short",
    "record length 1 over",
}
CLAIMS = {"claims log append time", "claims log append time without a time"}
FUTURE = {"far in the future inside", "timestamp overflows", "key null and far in the future"}
KEYLESS = {"key null": [1], "key length -2": [1]}


def expected(topic: str, codec: Codec, name: str) -> tuple[str, list[int]]:
    """The error, and the records that it names."""
    is_rewritten = topic in TARGETS and TARGETS[topic] != codec
    if name in BROKEN or name in LENGTHS:
        return INVALID, []
    if name == "bytes behind the stream" and codec in (Codec.NONE, Codec.SNAPPY, Codec.ZSTD):
        return INVALID, []
    if name in NUMBERING and codec != Codec.NONE and not is_rewritten:
        return INVALID, []
    if topic == "append time":
        return (TIME, [0, 1, 2]) if name in CLAIMS else (NONE, [])
    if topic == "compacted" and name in KEYLESS:
        return INVALID, KEYLESS[name]
    if name in FUTURE:
        also_keyless = topic == "compacted" and name == "key null and far in the future"
        return TIME, {"key null and far in the future": [1, 2] if also_keyless else [2]}.get(name, [1])
    if name == "claims log append time without a time":
        return TIME, [0, 1, 2]
    if topic == "narrow" and name == "far in the past inside":
        return TIME, [1]
    return NONE, []


def kafkas_own(topic: str, codec: Codec, name: str, error: str) -> set[str]:
    """What Kafka may say where Ottla says `error`."""
    is_rewritten = topic in TARGETS and TARGETS[topic] != codec
    if name in LENGTHS and codec != Codec.NONE and not is_rewritten:
        return {NONE}
    if name == "bytes behind the stream" and codec == Codec.SNAPPY:
        return {NONE}
    return {error, "UNKNOWN_SERVER_ERROR"} if error == INVALID else {error}


@pytest.mark.parametrize(
    ("topic", "codec"),
    [
        (topic, codec)
        for topic in TOPICS
        for codec in (Codec if topic == "plain" else (Codec.NONE, Codec.LZ4))
    ],
)
def test_every_lie(raw: RawClient, broker: BrokerProcess, topic_name: str, topic: str, codec: Codec) -> None:
    """Each case gets its error and the records that are to blame, or is stored with a header that tells the truth."""
    create_topic(raw, topic_name, partitions=len(CASES), retention_ms="-1", **TOPICS[topic])
    for partition, (name, case) in enumerate(CASES.items()):
        now_ms = time.time_ns() // 1_000_000
        answer = produce(raw, topic_name, case.batch(codec, now_ms), partition=partition)
        error, blamed = expected(topic, codec, name)
        got = ErrorCode(answer.error_code).name
        if isinstance(broker, RealKafka):
            assert got in kafkas_own(topic, codec, name, error), name
        else:
            assert got == error, name
        if got == error:
            assert [each.batch_index for each in answer.record_errors] == blamed, name
        if got == error == NONE:
            stored = stored_batch(raw, topic_name, partition)
            check_stored(stored, case, codec, topic, now_ms, answer)
            check_times(raw, topic_name, partition, stored)


def stored_batch(raw: RawClient, topic: str, partition: int = 0) -> BatchView:
    (stored,) = split_batches(memoryview(bytearray(fetch_records(raw, topic, 0, partition))))
    return stored


def check_stored(
    stored: BatchView, case: BadRecords, codec: Codec, topic: str, now_ms: int, answer: Any
) -> None:
    """The codec that the topic asks for, the greatest timestamp of the records, and a right checksum."""
    assert stored.crc_matches()
    assert stored.codec == TARGETS.get(topic, codec)
    if topic == "append time":
        assert (stored.timestamp_type, stored.max_timestamp) == (1, answer.log_append_time_ms)
        return
    assert stored.timestamp_type == 0
    times = [timestamp for _, timestamp in iter_positions(stored)]
    if case.header.get("attributes") == 0x08:
        assert stored.max_timestamp == now_ms
    else:
        assert stored.max_timestamp == max(times)
    if stored.codec != codec:
        assert [offset for offset, _ in iter_positions(stored)] == [0, 1, 2]
        assert stored.attributes & ~7 == 0


def check_times(raw: RawClient, topic: str, partition: int, stored: BatchView) -> None:
    """ListOffsets finds the record with the greatest timestamp, by that timestamp and without it."""
    positions = list(iter_positions(stored))
    if stored.max_timestamp != max(timestamp for _, timestamp in positions):
        return  # it claimed to be stamped by the broker, and its records have times of their own
    offset = next(offset for offset, timestamp in positions if timestamp == stored.max_timestamp)
    if 0 <= offset <= stored.last_offset:
        found = ("NONE", stored.max_timestamp, offset, 0)
        assert look_up(raw, topic, MAX_TIMESTAMP, partition=partition) == found
        if stored.max_timestamp >= 0:
            assert look_up(raw, topic, stored.max_timestamp, partition=partition) == found


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("count", [3, 5000])
def test_times_of_large_batches(raw: RawClient, topic_name: str, codec: Codec, count: int) -> None:
    """Exact to the record, wherever in the batch it is, also in batches that are opened in a worker thread."""
    create_topic(raw, topic_name, retention_ms="-1")
    base_ms = time.time_ns() // 1_000_000 - 1_000_000
    times = [base_ms + 7 * number - (50 if number % 3 == 1 else 0) for number in range(count)]
    records = [Record(n, timestamp, b"%d" % n, b"%x" % (n * 7919) * 8) for n, timestamp in enumerate(times)]
    for _ in range(2):
        assert produce(raw, topic_name, build_batch(records, codec=codec)).error_code == ErrorCode.NONE
    for wanted in (0, 1, 2, count // 2, count - 2, count - 1):
        offset = next(n for n, timestamp in enumerate(times) if timestamp >= times[wanted])
        assert look_up(raw, topic_name, times[wanted]) == ("NONE", times[offset], offset, 0)
    greatest = max(times)
    assert look_up(raw, topic_name, MAX_TIMESTAMP) == ("NONE", greatest, times.index(greatest), 0)
    assert look_up(raw, topic_name, greatest + 1) == ("NONE", -1, -1, -1)


@pytest.mark.parametrize("codec", list(Codec))
def test_order_of_small_and_large_batches(raw: RawClient, topic_name: str, codec: Codec) -> None:
    """Batches of one connection are appended as they were sent, whether they take long to open or not."""
    create_topic(raw, topic_name)
    now_ms = time.time_ns() // 1_000_000
    end = 0
    for size in (1, 4000, 2, 3000, 1):
        records = [Record(n, now_ms, b"%d" % n, b"%x" % (n * 7919) * 8) for n in range(size)]
        answer = produce(raw, topic_name, build_batch(records, codec=codec))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, end)
        end += size


def test_too_large_after_recompression(raw: RawClient, topic_name: str) -> None:
    """max.message.bytes is asked before and after the topic's codec is applied."""
    create_topic(raw, topic_name, compression_type="uncompressed", max_message_bytes="2000")
    now_ms = time.time_ns() // 1_000_000
    for size, error in ((1500, "NONE"), (5000, "MESSAGE_TOO_LARGE")):
        packed = build_batch([Record(0, now_ms, b"k", bytes(size))], codec=Codec.GZIP)
        assert len(packed) < 200
        assert ErrorCode(produce(raw, topic_name, packed).error_code).name == error


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_large_batches_are_recompressed(raw: RawClient, topic_name: str, codec: Codec) -> None:
    """The codec and level of the topic, whatever the producer's, with nothing lost."""
    create_topic(raw, topic_name, compression_type="zstd", compression_zstd_level="7")
    now_ms = time.time_ns() // 1_000_000
    records = [
        Record(n, now_ms + n % 9, b"%d" % n, b"%x" % (n * 7919) * 8, (("h", b"x"),)) for n in range(2000)
    ]
    assert produce(raw, topic_name, build_batch(records, codec=codec)).error_code == ErrorCode.NONE
    stored = stored_batch(raw, topic_name)
    assert (stored.codec, stored.records_count, stored.max_timestamp) == (Codec.ZSTD, 2000, now_ms + 8)
    assert list(iter_positions(stored)) == [(each.offset, each.timestamp) for each in records]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("attributes", [0, 1])
def test_old_formats(raw: RawClient, topic_name: str, magic: int, attributes: int) -> None:
    """Messages of the formats before v2, compressed or not, are refused by Kafka 4."""
    create_topic(raw, topic_name)
    body = bytes((magic, attributes)) + (bytes(8) if magic else b"") + b"\xff\xff\xff\xff" + b"\0\0\0\1v"
    message = zlib.crc32(body).to_bytes(4, "big") + body
    answer = produce(raw, topic_name, bytes(8) + len(message).to_bytes(4, "big") + message)
    assert ErrorCode(answer.error_code).name in (INVALID, "UNSUPPORTED_FOR_MESSAGE_FORMAT")


def test_a_batch_inside_a_batch(raw: RawClient, topic_name: str) -> None:
    """A stream that holds a batch instead of records is no stream of records."""
    create_topic(raw, topic_name)
    now_ms = time.time_ns() // 1_000_000
    inner = BadRecords(GOOD).batch(Codec.NONE, now_ms)
    answer = produce(raw, topic_name, BadRecords(inner).batch(Codec.LZ4, now_ms))
    assert ErrorCode(answer.error_code).name in (INVALID, "UNKNOWN_SERVER_ERROR")


def test_empty_keys_and_values(raw: RawClient, topic_name: str) -> None:
    """Empty is not null: it is a key to a compacted topic."""
    create_topic(raw, topic_name, cleanup_policy="compact")
    now_ms = time.time_ns() // 1_000_000
    sent = BadRecords(record(0, key=b"", value=b"") + record(1, key=b"", value=None), count=2)
    assert produce(raw, topic_name, sent.batch(Codec.NONE, now_ms)).error_code == ErrorCode.NONE
