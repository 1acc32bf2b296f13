"""The compiled reading of records says what its twins in Python say, of good and of damaged batches."""

import random
import struct
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config.topic_config import TopicConfig
from ottla.log_store import validation
from ottla.log_store.validation import AppendRules, prepare_client_batch
from ottla.wire.crc import crc32c
from ottla.wire.errors import KafkaError
from ottla.wire.records import Record, build_batch
from ottla.wire.records import lengths as lengths_module
from ottla.wire.records import scan as scan_module
from ottla.wire.records.header import HEADER_SIZE

NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module", autouse=True)
def _in_python() -> Iterator[None]:
    """What is compared with is in Python, also where the tests run with what is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (validation, scan_module, lengths_module):
            patch.setattr(module, "speed", None)
        yield


nullable = st.none() | st.binary(max_size=200)
records_strategy = st.lists(
    st.builds(
        Record,
        offset=st.integers(0, 3) | st.just(0),
        timestamp=st.sampled_from([NOW_MS, NOW_MS - 1, NOW_MS + 5, -1, NOW_MS + 10**9, NOW_MS - 10**12]),
        key=nullable,
        value=nullable,
        headers=st.lists(st.tuples(st.text(max_size=5), nullable), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=30,
)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A batch, most often damaged somewhere, most often with a checksum that is right nevertheless."""
    records = draw(records_strategy)
    if draw(st.booleans()):
        for number, record in enumerate(records):
            record.offset = number
    else:
        records.sort(key=lambda record: record.offset)
    data = bytearray(build_batch(records, codec=draw(st.sampled_from([0, 0, 0, 3]))))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(HEADER_SIZE, len(data) - 1) | st.integers(0, len(data) - 1))
        data[place] = draw(st.integers(0, 255) | st.sampled_from([0, 1, 2, 0x7F, 0x80, 0x81, 0xFF]))
    if draw(st.booleans()):
        data[HEADER_SIZE - 4 : HEADER_SIZE] = struct.pack(">i", draw(st.integers(-1, 40)))
    if draw(st.integers(0, 9)) < 8:
        struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    return bytes(data)


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except KafkaError as error:
        return type(error), error.code, error.detail, getattr(error, "record_errors", None)


@given(data=batches(), behind=st.binary(max_size=20), wrong_count=st.integers(-2, 40) | st.none())
@settings(max_examples=400)
def test_a_scan_says_the_same(speed: ModuleType, data: bytes, behind: bytes, wrong_count: int | None) -> None:
    """Numbers and errors are those of Python, with whatever bytes behind the records."""
    payload = data[HEADER_SIZE:]
    count = struct.unpack(">i", data[57:61])[0] if wrong_count is None else wrong_count
    for buf in (payload + behind, memoryview(bytearray(payload + behind))):
        expected = outcome(scan_module.scan_records, buf, len(payload), count)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scan_module, "speed", speed)
            assert outcome(scan_module.scan_records, buf, len(payload), count) == expected


@given(data=batches(), behind=st.binary(max_size=20), skip=st.integers(0, 5))
@settings(max_examples=400)
def test_following_lengths_says_the_same(speed: ModuleType, data: bytes, behind: bytes, skip: int) -> None:
    """The place of the last record, or none."""
    count = struct.unpack(">i", data[57:61])[0]
    buf = bytes(skip) + data[HEADER_SIZE:] + behind
    end = len(buf) - len(behind)
    for tried in (count, count - 1, count + 1, 0):
        expected = lengths_module.last_record_at(buf, skip, end, tried)
        assert speed.follow_lengths(buf, skip, end, tried) == expected


def test_many_records_of_all_sizes_are_followed(speed: ModuleType) -> None:
    """Runs of one size, and of different ones, with lengths of one to three bytes."""
    sizes = random.Random(1)
    records = [
        Record(number, NOW_MS, None, bytes(sizes.choice([0, 1, 60, 61, 5000, 20_000])), ())
        for number in range(300)
    ]
    payload = build_batch(records)[HEADER_SIZE:]
    place = lengths_module.last_record_at(payload, 0, len(payload), 300)
    assert place is not None
    assert speed.follow_lengths(payload, 0, len(payload), 300) == place
    assert speed.scan_records(payload, len(payload), 300) == scan_module.scan_records(
        payload, len(payload), 300
    )


CONFIGS = {
    "defaults": TopicConfig(),
    "compacted": TopicConfig(cleanup_policy=frozenset({"compact"})),
    "old records refused": TopicConfig(message_timestamp_before_max_ms=3_600_000),
    "append time": TopicConfig(message_timestamp_type="LogAppendTime"),
    "uncompressed": TopicConfig(compression_type="uncompressed"),
    "small": TopicConfig(max_message_bytes=300),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@given(data=batches())
@settings(max_examples=150)
def test_a_batch_is_taken_or_refused_alike(speed: ModuleType, config: TopicConfig, data: bytes) -> None:
    """The same batch comes out, or the same error, as when Python reads every record of it."""

    def prepare() -> bytes:
        return bytes(prepare_client_batch(memoryview(bytearray(data)), AppendRules(config), NOW_MS).data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "FULLY_READ_RECORDS", 1000)
        expected = outcome(prepare)
        patch.setattr(validation, "speed", speed)
        patch.setattr(scan_module, "speed", speed)
        assert outcome(prepare) == expected


def test_every_record_is_read(speed: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time in the middle of a large batch that is greater than the header's is put there."""
    monkeypatch.setattr(validation, "speed", speed)
    monkeypatch.setattr(scan_module, "speed", speed)
    records = [Record(number, NOW_MS + 7 * (number == 50), b"k", b"v", ()) for number in range(100)]
    data = bytearray(build_batch(records))
    struct.pack_into(">q", data, 35, NOW_MS)
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    batch = prepare_client_batch(memoryview(data), AppendRules(TopicConfig()), NOW_MS)
    assert batch.max_timestamp == NOW_MS + 7
    assert batch.crc_matches()


def test_no_thread_is_needed_to_read_records(speed: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large batch is costly only where it must be written anew, or its wrong records named."""
    monkeypatch.setattr(validation, "speed", speed)
    monkeypatch.setattr(scan_module, "speed", speed)
    records = [Record(number, NOW_MS, None, bytes(10), ()) for number in range(5000)]
    data = memoryview(bytearray(build_batch(records)))
    compacted, recompressed = (
        AppendRules(CONFIGS["compacted"]),
        AppendRules(TopicConfig(compression_type="lz4")),
    )
    assert not validation.is_costly(data, AppendRules(TopicConfig()))
    assert not validation.is_costly(data, compacted)
    assert validation.is_costly(data, recompressed)
    with pytest.raises(validation.CostlyBatch):
        prepare_client_batch(data, compacted, NOW_MS, may_take_long=False)
    with pytest.raises(validation.InvalidRecords):
        prepare_client_batch(data, compacted, NOW_MS)


@pytest.mark.parametrize("name", ["scan_records", "follow_lengths", "is_usual_batch"])
def test_wrong_arguments_are_refused(speed: ModuleType, name: str) -> None:
    """By an exception, as from a function in Python."""
    function = getattr(speed, name)
    with pytest.raises(TypeError):
        function(b"")
    with pytest.raises(TypeError):
        function(*["no buffer"] * 5)


def test_the_end_must_be_in_the_buffer(speed: ModuleType) -> None:
    """Nothing is read behind it."""
    with pytest.raises(ValueError, match="behind the buffer"):
        speed.scan_records(bytes(10), 11, 1)
    assert speed.follow_lengths(bytes(10), 0, 11, 1) is None
