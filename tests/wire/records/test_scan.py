"""The scan of a batch's records agrees with reading them, whatever they are and however they are damaged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.errors import KafkaError
from ottla.wire.records import BatchView, InvalidRecord, Record, build_batch, iter_records
from ottla.wire.records.scan import RecordScan, glance_at_records, scan_records

DELTAS = st.one_of(st.integers(-70, 70), st.integers(-10_000, 10_000), st.integers(-(2**40), 2**40))
SIZES = st.one_of(st.integers(0, 70), st.integers(0, 9000))
PARTS = st.one_of(st.none(), SIZES.map(bytes))
HEADERS = st.lists(
    st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=5))), max_size=3
).map(tuple)
RECORDS = st.lists(
    st.builds(Record, st.just(0), DELTAS.map(lambda delta: 2**41 + delta), PARTS, PARTS, HEADERS),
    min_size=1,
    max_size=20,
)


def view_of(records: list[Record]) -> BatchView:
    numbered = [
        Record(index, each.timestamp, each.key, each.value, each.headers)
        for index, each in enumerate(records)
    ]
    return BatchView(memoryview(bytearray(build_batch(numbered))))


def by_reading(view: BatchView) -> RecordScan:
    """The same facts from the records themselves."""
    records = list(iter_records(view))
    deltas = [record.timestamp - view.base_timestamp for record in records]
    numbers = [record.offset for record in records]
    keyless = sum(record.key is None for record in records)
    return RecordScan(min(deltas), max(deltas), deltas[0], numbers == list(range(len(records))), keyless)


@given(RECORDS)
@settings(deadline=None)
def test_the_scan_tells_what_the_records_say(records: list[Record]) -> None:
    """Timestamps, numbering and keys of any records."""
    view = view_of(records)
    assert scan_records(bytes(view.payload), len(view.payload), len(records)) == by_reading(view)
    glance = glance_at_records(view.payload, len(view.payload), len(records))
    ends = [records[0].timestamp - view.base_timestamp, records[-1].timestamp - view.base_timestamp]
    assert glance == (min(ends), max(ends), ends[0], True, 0)


@given(RECORDS, st.data())
@settings(deadline=None, max_examples=300)
def test_a_changed_byte(records: list[Record], data: st.DataObject) -> None:
    """Damaged records are refused by the scan exactly when they cannot be read."""
    view = view_of(records)
    position = data.draw(st.integers(61, len(view.buf) - 1))
    view.buf[position] = data.draw(st.integers(0, 255))
    try:
        expected: RecordScan | None = by_reading(view)
    except KafkaError:
        expected = None
    if expected is None:
        with pytest.raises(InvalidRecord):
            scan_records(bytes(view.payload), len(view.payload), len(records))
    elif expected.least_timestamp_delta > -(2**62) and expected.greatest_timestamp_delta < 2**62:
        assert scan_records(bytes(view.payload), len(view.payload), len(records)) == expected


@given(st.binary(max_size=200), st.integers(-2, 40))
def test_noise(payload: bytes, count: int) -> None:
    """Any bytes give an answer or InvalidRecord."""
    for read in (scan_records, glance_at_records):
        try:
            assert read(payload, len(payload), count).keyless <= count
        except InvalidRecord:
            continue


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 8191, 8193])
def test_numbering_of_every_width(count: int) -> None:
    """Offset deltas of one, two and three bytes; one that is wrong is noticed wherever it is."""
    view = view_of([Record(0, 5, None, b"v")] * count)
    payload = bytes(view.payload)
    assert scan_records(payload, len(payload), count).is_numbered
    assert glance_at_records(payload, len(payload), count).is_numbered
    records = [Record(index, 5, None, b"v") for index in range(count)]
    records[-1].offset += 1
    spoiled = bytes(BatchView(memoryview(build_batch(records))).payload)
    assert not scan_records(spoiled, len(spoiled), count).is_numbered
    assert not glance_at_records(spoiled, len(spoiled), count).is_numbered


def test_a_glance_counts() -> None:
    """One record more or less than there are is found without reading fields."""
    payload = view_of([Record(0, 5, None, b"v")] * 50).payload
    for count in (49, 51, 0, -1):
        with pytest.raises(InvalidRecord):
            glance_at_records(payload, len(payload), count)
