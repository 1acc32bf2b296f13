"""The quick look through a batch finds what the slow one does, and refuses what makes no sense."""

import struct

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ottla.wire.errors import KafkaError
from ottla.wire.records import BatchView, Codec, Record, build_batch, iter_records
from ottla.wire.records.builder import write_varint
from ottla.wire.records.header import HEADER_SIZE
from ottla.wire.records.key_scan import NO_KEY, batch_payload, record_bounds, scan_keys

SIZES = st.sampled_from([0, 1, 5, 63, 64, 200, 9000])


def with_length(key: bytes | None) -> bytes:
    """A key as it is scanned: behind its length, in the bytes that a record has."""
    if key is None:
        return NO_KEY
    length = bytearray()
    write_varint(length, len(key))
    return bytes(length + key)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Runs of like records, one after the other, and stretches where no two are alike."""
    records: list[Record] = []
    offset = timestamp = 0
    for _ in range(draw(st.integers(1, 5))):
        key_size, value_size = draw(SIZES), draw(SIZES)
        has_key, has_value = draw(st.booleans()) or draw(st.booleans()), draw(st.booleans())
        headers = (("h", b"x"),) * draw(st.integers(0, 2))
        step = draw(st.sampled_from([0, 1, 1000, -50]))
        gap = draw(st.sampled_from([1, 1, 100, 10_000]))
        spread = draw(st.sampled_from([1, 1, 50, 600]))
        tombstone_every = draw(st.sampled_from([7, 1000]))
        for number in range(draw(st.sampled_from([1, 3, 20, 100]))):
            varied = number * 37 % spread
            key = (b"%d" % (offset % 7) * (key_size + 1))[: key_size + varied % 5] if has_key else None
            value = bytes(value_size + varied) if has_value and number % tombstone_every < 6 else None
            records.append(Record(offset, timestamp, key, value, headers))
            offset += gap
            timestamp += step
    return build_batch(records, codec=draw(st.sampled_from([Codec.NONE, Codec.ZSTD])))


@given(batches())
@settings(max_examples=200, deadline=None)
def test_same_as_reading_every_record(data: bytes) -> None:
    """Keys, absent keys, absent values and the bounds of the records."""
    view = BatchView(memoryview(data))
    payload = batch_payload(view)
    scan = scan_keys(payload, view.records_count)
    records = list(iter_records(view))
    assert scan.keys == [with_length(record.key) for record in records]
    assert scan.keyless == [index for index, record in enumerate(records) if record.key is None]
    assert scan.tombstones == [index for index, record in enumerate(records) if record.value is None]
    bounds = record_bounds(payload, view.records_count)
    assert bounds[0] == 0
    assert bounds[-1] == len(payload)
    for record, start, end in zip(records, bounds[:-1], bounds[1:], strict=True):
        whole = bytearray(data[:HEADER_SIZE]) + payload[start:end]
        struct.pack_into(">i", whole, 8, len(whole) - 12)
        struct.pack_into(">h", whole, 21, 0)
        struct.pack_into(">i", whole, 57, 1)
        [alone] = iter_records(BatchView(memoryview(whole)))
        assert alone == record


@given(st.lists(batches(), min_size=2, max_size=4))
@settings(max_examples=30, deadline=None)
def test_batches_together(several: list[bytes]) -> None:
    """The records of batches may be looked at as one: what is found is the same."""
    views = [BatchView(memoryview(data)) for data in several]
    together = scan_keys(b"".join(map(batch_payload, views)), sum(view.records_count for view in views))
    keys = [key for view in views for key in scan_keys(batch_payload(view), view.records_count).keys]
    assert together.keys == keys


def test_lengths_of_keys_are_written_anew() -> None:
    """A length in more bytes than it needs does not make another key of the same one."""
    # Length, attributes, timestamp, offset, key, value, number of headers.
    short = bytes([16, 0, 0, 0, 2, 97, 2, 98, 0])
    lengthy = bytes([18, 0, 0, 0, 0x82, 0, 97, 2, 98, 0])
    for count in (1, 40):
        plain = scan_keys(short * count, count)
        other = scan_keys(lengthy * count, count)
        assert plain.keys == other.keys == [b"\x02a"] * count


@given(batches(), st.data())
@settings(max_examples=200, deadline=None)
def test_broken_records_are_refused_or_harmless(data: bytes, draws: st.DataObject) -> None:
    """Whatever byte of the records is changed: an error for the client, or something for each record."""
    broken = bytearray(data)
    position = draws.draw(st.integers(HEADER_SIZE, len(data) - 1))
    broken[position] = draws.draw(st.integers(0, 255))
    view = BatchView(memoryview(broken))
    try:
        payload = batch_payload(view)
        scan = scan_keys(payload, view.records_count)
        bounds = record_bounds(payload, view.records_count)
    except KafkaError:
        return
    assert len(scan.keys) == view.records_count
    assert bounds == sorted(set(bounds))
    assert bounds[-1] == len(payload)
    assert len(bounds) == len(scan.keys) + 1


def test_counts_that_lie() -> None:
    """More or fewer records than there are, whether they are alike or not, and none at all."""
    for spread in (1, 10):
        records = [Record(index, 0, b"key", b"value" * (index % spread)) for index in range(40)]
        payload = batch_payload(BatchView(memoryview(build_batch(records))))
        for count in (39, 41, -1):
            with pytest.raises(KafkaError):
                scan_keys(payload, count)
            with pytest.raises(KafkaError):
                record_bounds(payload, count)
    assert scan_keys(b"", 0).keys == []
