"""Compressed batches made to cost the broker much: bombs, and counts that lie."""

from __future__ import annotations

import resource
import struct
from pathlib import Path
from typing import Any

import crc32c
import pytest
import zstandard

from ottla.log_store.validation import MAX_OPENED_RECORDS, MAX_RECORD_ERRORS, AppendOrigin, InvalidRecords
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records import Codec, Record, build_batch
from tests.log_store.batches import NOW_MS, append, batch, new_log, values_from

GIB = 1024 * 1024 * 1024
SLACK_KIB = 400 * 1024


def claiming(data: bytes, count: int, attributes: int) -> memoryview:
    """The batch with another count of records, consistently so, and the right checksum."""
    changed = bytearray(data)
    struct.pack_into(">h", changed, 21, attributes)
    struct.pack_into(">i", changed, 23, count - 1)
    struct.pack_into(">i", changed, 57, count)
    struct.pack_into(">i", changed, 8, len(changed) - 12)
    struct.pack_into(">I", changed, 17, crc32c.crc32c(memoryview(changed)[21:]))
    return memoryview(changed)


def zeros_bomb(count: int) -> memoryview:
    """1 GiB of zeros in 32 KiB, taken for `count` records."""
    frame = zstandard.ZstdCompressor().compressobj()
    piece = bytes(1024 * 1024)
    payload = b"".join(frame.compress(piece) for _ in range(GIB // len(piece))) + frame.flush()
    head = build_batch([Record(0, NOW_MS, b"k", b"v")])[:61]
    return claiming(head + payload, count, Codec.ZSTD)


def refused(log: Any, records: memoryview) -> KafkaError:
    before = log.size_bytes, log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        log.append(records, leader_epoch=0, now_ms=NOW_MS)
    assert (log.size_bytes, log.log_end_offset) == before
    return caught.value


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_count_of_billions(tmp_path: Path, codec: Codec) -> None:
    """A compressed batch cannot take two billion offsets by claiming as many records."""
    log = new_log(tmp_path)
    data = build_batch([Record(0, NOW_MS, None, b"value")], codec=codec)
    assert refused(log, claiming(data, 2**31 - 1, codec)).code == ErrorCode.INVALID_RECORD
    assert append(log, batch(b"after")) == 0


def test_a_count_of_billions_on_a_log_append_time_topic(tmp_path: Path) -> None:
    """Errors for single records are not listed by the million."""
    log = new_log(tmp_path, message_timestamp_type="LogAppendTime")
    data = build_batch([Record(n, NOW_MS, None, b"") for n in range(20_000)])
    error = refused(log, claiming(data, 20_000, 0x08))
    assert isinstance(error, InvalidRecords)
    assert 0 < len(error.record_errors) <= MAX_RECORD_ERRORS


@pytest.mark.parametrize(
    "config",
    [
        {"cleanup_policy": frozenset({"compact"})},
        {"message_timestamp_before_max_ms": 1000},
        {"compression_type": "gzip"},
        {"compression_type": "uncompressed"},
    ],
    ids=["compacted", "old timestamps refused", "compressed again", "never compressed"],
)
def test_a_bomb_where_the_topic_looks_inside(tmp_path: Path, config: dict[str, Any]) -> None:
    """Topics that open batches stop at a bound, and say so."""
    log = new_log(tmp_path, **config)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for count in (1, 100_000):
        assert refused(log, zeros_bomb(count)).code in (ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < SLACK_KIB
    append(log, batch(b"after", keys=[b"k"]))
    assert values_from(log, 0) == [(0, b"after")]


def test_more_records_than_a_compacted_topic_looks_at(tmp_path: Path) -> None:
    """A batch of very many records is refused before any is read."""
    log = new_log(tmp_path, cleanup_policy=frozenset({"compact"}))
    data = build_batch([Record(0, NOW_MS, b"k", bytes(range(256)) * 1000)], codec=Codec.SNAPPY)
    error = refused(log, claiming(data + bytes(MAX_OPENED_RECORDS), MAX_OPENED_RECORDS + 1, Codec.SNAPPY))
    assert error.code == ErrorCode.INVALID_RECORD
    assert str(MAX_OPENED_RECORDS) in str(error.detail)


def test_a_bomb_that_was_taken_is_not_opened_for_its_time(tmp_path: Path) -> None:
    """Looking for a timestamp in a log with a bomb ends in an answer or in an error, within bounds."""
    log = new_log(tmp_path)
    append(log, zeros_bomb(1), origin=AppendOrigin.REPLICATION)  # as it may lie in a directory of Kafka
    append(log, batch(b"after", timestamps=[NOW_MS + 10]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(KafkaError):
        log.offset_for_timestamp(NOW_MS)
    found = log.offset_for_timestamp(NOW_MS + 10)
    assert found is not None
    assert found.offset == 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < SLACK_KIB
