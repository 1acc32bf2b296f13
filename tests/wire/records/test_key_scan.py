"""The quick look through a batch finds what the slow one does, and refuses what makes no sense."""

import struct

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ottla.wire.errors import KafkaError
from ottla.wire.records import BatchView, Codec, Record, build_batch, iter_records
from ottla.wire.records.header import HEADER_SIZE
from ottla.wire.records.key_scan import scan_batch

SIZES = st.sampled_from([0, 1, 5, 63, 64, 200, 9000])


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Runs of like records, one after the other."""
    records: list[Record] = []
    offset = timestamp = 0
    for _ in range(draw(st.integers(1, 5))):
        key_size, value_size = draw(SIZES), draw(SIZES)
        has_key, has_value = draw(st.booleans()) or draw(st.booleans()), draw(st.booleans())
        headers = (("h", b"x"),) * draw(st.integers(0, 2))
        step = draw(st.sampled_from([0, 1, 1000, -50]))
        gap = draw(st.sampled_from([1, 1, 100, 10_000]))
        for _ in range(draw(st.sampled_from([1, 3, 20, 100]))):
            key = b"%d" % (offset % 7) * key_size if has_key else None
            key = None if key is None else key[:key_size]
            records.append(Record(offset, timestamp, key, bytes(value_size) if has_value else None, headers))
            offset += gap
            timestamp += step
    return build_batch(records, codec=draw(st.sampled_from([Codec.NONE, Codec.ZSTD])))


@given(batches())
@settings(max_examples=150, deadline=None)
def test_same_as_reading_every_record(data: bytes) -> None:
    """Keys, absent keys, absent values and the bounds of the records."""
    view = BatchView(memoryview(data))
    scan = scan_batch(view)
    records = list(iter_records(view))
    assert scan.keys == [record.key or b"" for record in records]
    assert scan.keyless == [index for index, record in enumerate(records) if record.key is None]
    assert scan.tombstones == [index for index, record in enumerate(records) if record.value is None]
    assert scan.bounds[0] == 0
    assert scan.bounds[-1] == len(scan.payload)
    for record, start, end in zip(records, scan.bounds[:-1], scan.bounds[1:], strict=True):
        whole = bytearray(data[:HEADER_SIZE]) + scan.payload[start:end]
        struct.pack_into(">i", whole, 8, len(whole) - 12)
        struct.pack_into(">h", whole, 21, 0)
        struct.pack_into(">i", whole, 57, 1)
        [alone] = iter_records(BatchView(memoryview(whole)))
        assert alone == record


@given(batches(), st.data())
@settings(max_examples=150, deadline=None)
def test_broken_records_are_refused_or_harmless(data: bytes, draws: st.DataObject) -> None:
    """Whatever byte of the records is changed: an error for the client, or bounds that fill the batch."""
    broken = bytearray(data)
    position = draws.draw(st.integers(HEADER_SIZE, len(data) - 1))
    broken[position] = draws.draw(st.integers(0, 255))
    try:
        scan = scan_batch(BatchView(memoryview(broken)))
    except KafkaError:
        return
    assert scan.bounds == sorted(set(scan.bounds))
    assert scan.bounds[-1] == len(scan.payload)
    assert len(scan.bounds) == len(scan.keys) + 1


def test_counts_that_lie() -> None:
    """More or fewer records than the header says, and none at all."""
    data = bytearray(build_batch([Record(index, 0, b"key", b"value") for index in range(40)]))
    for count in (39, 41, -1):
        struct.pack_into(">i", data, 57, count)
        with pytest.raises(KafkaError):
            scan_batch(BatchView(memoryview(data)))
    empty = build_batch([], last_offset=5)
    assert scan_batch(BatchView(memoryview(empty))).keys == []
