"""Records inside batches: round trips, counting, and batches that lie."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records import (
    BatchView,
    Codec,
    InvalidRecord,
    Record,
    build_batch,
    compress,
    count_is_possible,
    count_matches,
    decompress,
    iter_positions,
    iter_records,
    patch_timestamp,
    with_offsets,
)
from ottla.wire.records.builder import write_varint
from ottla.wire.records.control import control_type_of, coordinator_epoch_of
from ottla.wire.records.records import read_varint, read_varlong
from tests.wire.records.record_strategies import CODECS, record_lists


def view_of(data: bytes) -> BatchView:
    return BatchView(memoryview(data))


def with_payload(data: bytes, payload: bytes, count: int | None = None) -> BatchView:
    """The batch with other records and a right length and checksum, as a liar would send it."""
    changed = bytearray(data[:61] + payload)
    changed[8:12] = struct.pack(">i", len(changed) - 12)
    if count is not None:
        changed[57:61] = struct.pack(">i", count)
    patch_timestamp(changed, 0, 0, 5)
    return BatchView(memoryview(changed))


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=40, deadline=None)
@given(records=record_lists())
def test_round_trip(codec: Codec, records: list[Record]) -> None:
    """What was built is what is read, with every codec."""
    view = view_of(build_batch(records, base_offset=records[0].offset, codec=codec))
    assert view.crc_matches()
    assert list(iter_records(view)) == records
    assert list(iter_positions(view)) == [(record.offset, record.timestamp) for record in records]
    assert (view.codec, view.records_count) == (codec, len(records))
    assert count_is_possible(view)
    if codec == Codec.NONE:
        assert count_matches(view)


def test_header_keys_that_are_not_utf8_survive() -> None:
    """Header keys come back byte for byte, even where they are not text."""
    record = Record(0, 0, None, None, ((b"\xff\xfe".decode("utf-8", "surrogateescape"), b""), ("é", None)))
    data = build_batch([record])
    assert b"\xff\xfe" in data
    assert list(iter_records(view_of(data))) == [record]


def test_an_emptied_batch() -> None:
    """Compaction may leave a header without records; it keeps its range of offsets."""
    view = view_of(build_batch([], base_offset=10, last_offset=19, codec=Codec.ZSTD, producer_id=3))
    assert (view.base_offset, view.last_offset, view.records_count, view.size_in_bytes) == (10, 19, 0, 61)
    assert list(iter_records(view)) == []
    with pytest.raises(ValueError, match="last_offset"):
        build_batch([])


def test_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    """Timestamps stay right when the base timestamp holds a delete horizon."""
    records = [Record(0, 1000, b"k", None), Record(1, 900, b"l", None)]
    view = view_of(build_batch(records, delete_horizon_ms=5000))
    assert (view.has_delete_horizon, view.base_timestamp, view.max_timestamp) == (True, 5000, 1000)
    assert list(iter_records(view)) == records


def test_with_offsets() -> None:
    """Records are numbered one after the other."""
    records = with_offsets([Record(0, 1, None, b"a"), Record(0, 2, None, b"b")], 40)
    assert [record.offset for record in records] == [40, 41]


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_round_trip(number: int) -> None:
    """A zigzag varint is read as it was written, and its end is found."""
    out = bytearray(b"?")
    write_varint(out, number)
    assert read_varlong(bytes(out), 1) == (number, len(out))
    if -(2**31) <= number < 2**31:
        assert read_varint(bytes(out), 1) == (number, len(out))
        assert len(out) <= 6


@pytest.mark.parametrize(("read", "length"), [(read_varint, 5), (read_varlong, 10)])
def test_endless_varints(read: type, length: int) -> None:
    """A varint that goes on beyond its width is refused."""
    assert read(b"\xff" * (length - 1) + b"\x01", 0)
    with pytest.raises(InvalidRecord):
        read(b"\xff" * length + b"\x01", 0)


@pytest.mark.parametrize("size", [0, 20, 56, 57, 58, 100, 8000, 8185, 8190, 9000, 2_000_000])
def test_count_matches_for_every_width_of_length(size: int) -> None:
    """Lengths of one, two and more bytes are followed, and a wrong count is found."""
    view = view_of(build_batch([Record(offset, 0, None, b"x" * size) for offset in range(3)]))
    assert count_matches(view)
    for wrong in (-1, 0, 1, 2, 4, 5, 2**31 - 1):
        view.records_count = wrong
        assert not count_matches(view)


def walks_through(payload: bytes, count: int) -> bool:
    """The same question answered the slow and plain way."""
    pos = 0
    for _ in range(count):
        try:
            length, pos = read_varint(payload, pos)
        except (IndexError, InvalidRecord):
            return False
        if length < 6:
            return False
        pos += length
    return pos == len(payload)


@settings(max_examples=150, deadline=None)
@given(
    runs=st.lists(st.tuples(st.integers(0, 150), st.integers(1, 300)), min_size=1, max_size=6),
    data=st.data(),
)
def test_count_of_many_records_of_like_size(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    """Runs of records of one size, whole or with a byte changed, are counted as one by one."""
    sizes = [size for size, times in runs for _ in range(times)]
    batch = bytearray(build_batch([Record(n, 0, None, bytes(size)) for n, size in enumerate(sizes)]))
    assert count_matches(BatchView(memoryview(batch)))
    batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    view = BatchView(memoryview(batch))
    assert count_matches(view) == walks_through(bytes(view.payload), len(sizes))
    view.records_count += data.draw(st.sampled_from([-1, 1, -20, 20]))
    assert count_matches(view) == (
        view.records_count >= 0 and walks_through(bytes(view.payload), view.records_count)
    )


def test_count_matches_does_not_read_the_next_batch() -> None:
    """A record that reaches into the batch after it is found."""
    data = bytearray(build_batch([Record(0, 0, None, b"x" * 20)]) * 2)
    data[61] += 2
    assert not count_matches(BatchView(memoryview(data)))


@settings(max_examples=200)
@given(records=record_lists(gaps=False), data=st.data())
def test_count_never_matches_what_cannot_be_read(records: list[Record], data: st.DataObject) -> None:
    """If lengths and count are right for iteration, the quick count says so too."""
    batch = bytearray(build_batch(records, base_offset=records[0].offset))
    position = data.draw(st.integers(57, len(batch) - 1))
    batch[position] = data.draw(st.integers(0, 255))
    view = BatchView(memoryview(batch))
    try:
        read = list(iter_records(view))
    except KafkaError:
        return
    assert len(read) == view.records_count
    assert count_matches(view)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [-1, 1, 3, 2**31 - 1])
def test_a_count_that_lies(codec: Codec, count: int) -> None:
    """Too few, too many, or a negative number of records is an invalid record."""
    data = build_batch([Record(0, 1, b"k", b"v"), Record(1, 1, b"k", b"v")], codec=codec)
    view = with_payload(data, data[61:], count)
    with pytest.raises(InvalidRecord):
        list(iter_records(view))


@pytest.mark.parametrize(
    "payload",
    [
        b"\x0a" + bytes(5),  # a record too short for its fields
        b"\x0f" + bytes(20),  # a negative length
        b"\xff\xff\xff\xff\xff\xff\x01",  # a length that does not end
        b"\x10" + bytes(4),  # fewer bytes than the length says
        b"\x0e\x00\x00\x00\x7e\x01\x00\x00",  # a key longer than the record
        b"\x0e\x00\x00\x00\x01\x01\x02\x00",  # a header of no bytes
        b"\x0e\x00\x00\x00\x01\x01\x01\x00",  # a negative count of headers
        b"\x10\x00\x00\x00\x01\x01\x02\x01\x01",  # a header without a key
        b"\x10\x00\x00\x00\x01\x01\x00\x00\x00",  # bytes left over in the record
        b"\x0c\x00\x00\x00\x01\x01\x80",  # a varint that runs out of the record
    ],
)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_records_that_make_no_sense(codec: Codec, payload: bytes) -> None:
    """Broken records are INVALID_RECORD, never an error of our own."""
    data = build_batch([Record(0, 1, None, None)], codec=codec)
    with pytest.raises(InvalidRecord):
        list(iter_records(with_payload(data, compress(codec, payload))))


def test_too_large_a_record() -> None:
    """The length of a record is checked before bytes are gathered for it."""
    view = view_of(build_batch([Record(0, 1, None, bytes(10_000))], codec=Codec.ZSTD))
    with pytest.raises(KafkaError) as caught:
        list(iter_records(view, max_record_bytes=9_999))
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS[1:])
def test_too_large_a_batch(codec: Codec) -> None:
    """Decompression stops where the batch as a whole becomes too large."""
    view = view_of(build_batch([Record(n, 1, None, bytes(100_000)) for n in range(20)], codec=codec))
    assert len(list(iter_records(view, max_batch_bytes=2_001_000))) == 20
    for read in (iter_records, iter_positions):
        with pytest.raises(KafkaError) as caught:
            list(read(view, max_batch_bytes=1_500_000))
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_counts_that_no_compressed_batch_can_hold() -> None:
    """The most compressible records there are pass; a count of billions in few bytes does not."""
    for codec in CODECS[1:]:
        view = view_of(build_batch([Record(n, 0, None, b"") for n in range(5000)], codec=codec))
        assert count_is_possible(view)
        for wrong in (-1, 2**31 - 1, 5 * view.size_in_bytes):
            view.records_count = wrong
            assert not count_is_possible(view)


def test_timestamps_wrap_as_in_java() -> None:
    """A timestamp delta that leaves 64 bits wraps round, as Java's long does."""
    data = bytearray(build_batch([Record(0, 10, None, None), Record(1, 2**62, None, None)]))
    data[27:35] = struct.pack(">q", 2**63 - 1)
    assert [record.timestamp for record in iter_records(view_of(bytes(data)))] == [
        2**63 - 1,
        2**63 - 1 + 2**62 - 10 - 2**64,
    ]


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_mutated_batches_raise_only_kafka_errors(codec: Codec, data: st.DataObject) -> None:
    """Whatever bytes change, the records are read or a KafkaError tells why not."""
    records = [Record(n, n, b"key" * n, b"value " * 20, (("h", None), ("i", b"x"))) for n in range(4)]
    batch = bytearray(build_batch(records, codec=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(21, len(batch) - 1))] = data.draw(st.integers(0, 255))
    view = BatchView(memoryview(batch))
    count_matches(view)
    with contextlib.suppress(KafkaError):
        positions = list(iter_positions(view))
        assert [(record.offset, record.timestamp) for record in iter_records(view)] == positions


@pytest.mark.parametrize("codec", CODECS)
@given(payload=st.binary(max_size=100), count=st.integers(-2, 20))
def test_random_payloads_raise_only_kafka_errors(codec: Codec, payload: bytes, count: int) -> None:
    """Random bytes in place of records end in records or in a KafkaError."""
    view = with_payload(build_batch([Record(0, 1, None, None)], codec=codec), payload, count)
    for read in (iter_records, iter_positions):
        with contextlib.suppress(KafkaError):
            assert len(list(read(view))) == max(count, 0)
    with contextlib.suppress(KafkaError):
        assert len(decompress(codec, payload, 10_000)) <= 10_000


def test_control_keys_and_values_that_are_too_short() -> None:
    """A control record without a proper key or value is invalid."""
    for key in (None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"):
        with pytest.raises(InvalidRecord):
            control_type_of(Record(0, 0, key, b""))
    for value in (None, b"\x00\x00", b"\xff\xff\x00\x00\x00\x00"):
        with pytest.raises(InvalidRecord):
            coordinator_epoch_of(Record(0, 0, b"\x00\x00\x00\x01", value))
    assert control_type_of(Record(0, 0, b"\x00\x01\x00\x63extra", None)) == 0x63
