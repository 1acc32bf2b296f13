"""Batches that Kafka's Java classes built, read by us, and the other way round."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.wire.records import (
    BatchView,
    Codec,
    ControlType,
    Record,
    build_batch,
    compress,
    count_matches,
    iter_records,
    patch,
    patch_append_time,
    split_batches,
)
from ottla.wire.records.control import build_end_txn_marker, control_type_of, coordinator_epoch_of
from tests.wire.records.java_bridge import JavaRecords
from tests.wire.records.record_strategies import CODECS, record_lists

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("codec", CODECS)
@few
@given(records=record_lists())
def test_we_read_what_java_builds(java_records: JavaRecords, codec: Codec, records: list[Record]) -> None:
    """Every codec of Java's builder gives us the records that went in."""
    data = java_records.build(records, codec=codec, base_offset=records[0].offset)
    [view] = split_batches(memoryview(data))
    assert view.crc_matches()
    assert view.codec == codec
    assert list(iter_records(view)) == records
    assert view.last_offset == records[-1].offset
    assert view.max_timestamp == max(record.timestamp for record in records)


@pytest.mark.parametrize("codec", CODECS)
@few
@given(records=record_lists())
def test_java_reads_what_we_build(java_records: JavaRecords, codec: Codec, records: list[Record]) -> None:
    """Java finds our checksum, header and records right for every codec."""
    data = build_batch(
        records,
        base_offset=records[0].offset,
        codec=codec,
        producer_id=7,
        producer_epoch=3,
        base_sequence=2**31 - 2,
        is_transactional=True,
        partition_leader_epoch=11,
    )
    [batch] = java_records.read(data)
    view = BatchView(memoryview(data))
    assert batch.records == records
    for name in (
        "base_offset",
        "last_offset",
        "next_offset",
        "size_in_bytes",
        "max_timestamp",
        "timestamp_type",
        "codec",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "is_transactional",
        "is_control",
        "partition_leader_epoch",
        "crc",
        "records_count",
    ):
        assert getattr(batch, name) == getattr(view, name), name


@few
@given(
    records=record_lists(),
    timestamp_type=st.sampled_from([0, 1]),
    delete_horizon_ms=st.none() | st.integers(min_value=0, max_value=2**45),
    is_transactional=st.booleans(),
)
def test_same_bytes_as_java(
    java_records: JavaRecords,
    records: list[Record],
    timestamp_type: int,
    delete_horizon_ms: int | None,
    is_transactional: bool,
) -> None:
    """An uncompressed batch of ours is byte for byte the one that Java builds."""
    common = {
        "base_offset": records[0].offset,
        "timestamp_type": timestamp_type,
        "append_time_ms": 1_700_000_000_000 if timestamp_type else -1,
        "producer_id": 5,
        "producer_epoch": 1,
        "base_sequence": 9,
        "is_transactional": is_transactional,
        "partition_leader_epoch": 4,
    }
    ours = build_batch(records, delete_horizon_ms=delete_horizon_ms, **common)  # type: ignore[arg-type]
    java = java_records.build(
        records,
        delete_horizon_ms=-1 if delete_horizon_ms is None else delete_horizon_ms,
        **common,  # type: ignore[arg-type]
    )
    assert ours == java
    assert count_matches(BatchView(memoryview(java)))


def test_last_sequence_wraps_as_in_java(java_records: JavaRecords) -> None:
    """Sequences go from 2^31-1 to 0 on both sides."""
    records = [Record(offset, 5, None, b"v") for offset in range(4)]
    data = build_batch(records, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    [batch] = java_records.read(data)
    assert batch.last_sequence == BatchView(memoryview(data)).last_sequence == 1


def test_java_accepts_patched_batches(java_records: JavaRecords) -> None:
    """New offsets leave the checksum right; append time brings a new one, and every record shows it."""
    data = bytearray(build_batch([Record(0, 5, b"k", b"v"), Record(1, 6, b"k", b"v")]) * 2)
    size = len(data) // 2
    patch(data, 0, 100, 7)
    patch(data, size, 102, 8)
    patch_append_time(data, size, 1234)
    first, second = java_records.read(bytes(data))
    assert (first.base_offset, first.last_offset, first.partition_leader_epoch) == (100, 101, 7)
    assert (second.base_offset, second.last_offset, second.partition_leader_epoch) == (102, 103, 8)
    assert [record.timestamp for record in first.records] == [5, 6]
    assert [record.timestamp for record in second.records] == [1234, 1234]
    assert (second.timestamp_type, second.max_timestamp) == (1, 1234)


@pytest.mark.parametrize("control_type", [ControlType.ABORT, ControlType.COMMIT])
def test_end_txn_marker_is_javas(java_records: JavaRecords, control_type: ControlType) -> None:
    """Our markers are the bytes that Java writes for the same control record."""
    marker = build_end_txn_marker(
        control_type, timestamp=77, producer_id=9, producer_epoch=2, coordinator_epoch=31, base_offset=500
    )
    [record] = iter_records(BatchView(memoryview(marker)))
    assert control_type_of(record) == control_type
    assert coordinator_epoch_of(record) == 31
    assert marker == java_records.build(
        [record], base_offset=500, producer_id=9, producer_epoch=2, is_transactional=True, is_control=True
    )


@pytest.mark.parametrize("codec", CODECS[1:])
def test_large_values_both_ways(java_records: JavaRecords, codec: Codec) -> None:
    """Records of many compression blocks pass in both directions."""
    value = os.urandom(70_000) + bytes(900_000)
    records = [Record(0, 1, b"k", value), Record(1, 2, None, value[::-1])]
    assert [batch.records for batch in java_records.read(build_batch(records, codec=codec))] == [records]
    data = java_records.build(records, codec=codec)
    assert list(iter_records(BatchView(memoryview(data)))) == records


@pytest.mark.parametrize("level", [1, 9, 12])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_java_reads_every_level(java_records: JavaRecords, codec: Codec, level: int) -> None:
    """Compression levels change the bytes, not what Java reads."""
    records = [Record(0, 1, b"k", b"value " * 1000)]
    level = min(level, 9) if codec == Codec.GZIP else level
    assert [b.records for b in java_records.read(build_batch(records, codec=codec, level=level))] == [records]


def test_java_reads_bare_snappy_as_we_do(java_records: JavaRecords) -> None:
    """A batch whose payload is one bare Snappy block, as librdkafka writes it, is read by both."""
    import snappy

    records = [Record(0, 1, b"k", b"value " * 100)]
    plain = build_batch(records)
    framed = build_batch(records, codec=Codec.SNAPPY)
    payload = snappy.compress(plain[61:])
    assert compress(Codec.SNAPPY, plain[61:]) == framed[61:]
    bare = bytearray(framed[:61] + payload)
    bare[8:12] = (len(bare) - 12).to_bytes(4, "big")
    patch_append_time(bare, 0, 50)
    [batch] = java_records.read(bytes(bare))
    assert (
        list(iter_records(BatchView(memoryview(bare))))
        == batch.records
        == [Record(0, 50, b"k", b"value " * 100)]
    )
