"""What is refused before it is written, with the code Kafka gives, and what is changed in place."""

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crc32c
import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.log import Log
from ottla.log_store.validation import (
    CHEAP_BYTES,
    CHEAP_OPENED_BYTES,
    CHEAP_RECORDS_TO_PASS,
    CHEAP_RECORDS_TO_READ,
    FULLY_READ_RECORDS,
    CostlyBatch,
    InvalidRecords,
    is_costly,
    prepare_client_batch,
    rules_of,
)
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.builder import build_batch
from ottla.wire.records.compression import Codec, compress
from ottla.wire.records.header import LOG_APPEND_TIME, BatchView, patch_timestamp
from ottla.wire.records.key_scan import batch_payload
from ottla.wire.records.records import Record, iter_records
from tests.log_store.batches import NOW_MS, append, batch, new_log, producer_batch, values_from, views


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are not read by what is compiled, which reads all of them."""
    for module in ("log_store.validation", "wire.records.scan", "wire.records.lengths"):
        monkeypatch.setattr(f"ottla.{module}.speed", None)


Damage = Callable[[bytearray], bytes | bytearray]


def sealed(data: bytearray) -> bytearray:
    """With a CRC that is right again."""
    struct.pack_into(">I", data, 17, crc32c.crc32c(memoryview(data)[21:]))
    return data


def put(format: str, position: int, value: int) -> Damage:
    def change(data: bytearray) -> bytearray:
        struct.pack_into(format, data, position, value)
        return sealed(data)

    return change


def flip(data: bytearray) -> bytearray:
    data[-1] ^= 1
    return data


REFUSED: dict[str, tuple[Damage, ErrorCode]] = {
    "nothing": (lambda data: b"", ErrorCode.INVALID_RECORD),
    "cut off": (lambda data: data[:-1], ErrorCode.INVALID_RECORD),
    "header cut off": (lambda data: data[:40], ErrorCode.INVALID_RECORD),
    "two batches": (lambda data: data + data, ErrorCode.INVALID_RECORD),
    "length too small": (put(">i", 8, 13), ErrorCode.CORRUPT_MESSAGE),
    "length below a header": (put(">i", 8, 48), ErrorCode.CORRUPT_MESSAGE),
    "negative length": (put(">i", 8, -1), ErrorCode.CORRUPT_MESSAGE),
    "magic 1": (put(">b", 16, 1), ErrorCode.INVALID_RECORD),
    "magic 3": (put(">b", 16, 3), ErrorCode.CORRUPT_MESSAGE),
    "base offset": (put(">q", 0, 1), ErrorCode.INVALID_RECORD),
    "flipped bit": (flip, ErrorCode.CORRUPT_MESSAGE),
    "wrong crc": (lambda data: data[:17] + b"\0\0\0\0" + data[21:], ErrorCode.CORRUPT_MESSAGE),
    "negative last offset": (put(">i", 23, -1), ErrorCode.INVALID_RECORD),
    "more records than offsets": (put(">i", 57, 4), ErrorCode.INVALID_RECORD),
    "fewer records than offsets": (put(">i", 57, 2), ErrorCode.INVALID_RECORD),
    "no record": (put(">i", 57, 0), ErrorCode.INVALID_RECORD),
    "control": (put(">h", 21, 0x20), ErrorCode.INVALID_RECORD),
    "producer without sequence": (put(">q", 43, 5), ErrorCode.INVALID_RECORD),
    "unknown codec": (put(">h", 21, 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "from the future": (put(">q", 35, NOW_MS + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path: Path, name: str) -> None:
    """A bad batch gets its code, and nothing of it is in the log."""
    damage, code = REFUSED[name]
    log = new_log(tmp_path)
    append(log, batch(b"before"))
    future = NOW_MS + 3_600_001 if name == "from the future" else NOW_MS
    data = damage(bytearray(batch(b"a", b"b", b"c", timestamps=[NOW_MS, NOW_MS, future])))
    size = log.size_bytes
    with pytest.raises(KafkaError) as refused:
        log.append(memoryview(bytearray(data)), leader_epoch=0, now_ms=NOW_MS)
    assert refused.value.code == code
    assert (log.size_bytes, log.log_end_offset) == (size, 1)
    append(log, batch(b"after"))
    assert values_from(log, 0) == [(0, b"before"), (1, b"after")]


def test_header_that_counts_wrong(tmp_path: Path) -> None:
    """A count and offsets that agree with each other but not with the records are found by the walk."""
    log = new_log(tmp_path)
    for count in (2, 4):
        data = bytearray(batch(b"a", b"b", b"c"))
        struct.pack_into(">i", data, 23, count - 1)
        with pytest.raises(KafkaError) as refused:
            log.append(memoryview(put(">i", 57, count)(data)), leader_epoch=0, now_ms=NOW_MS)
        assert refused.value.code == ErrorCode.INVALID_RECORD


def test_trailing_bytes_are_left_out(tmp_path: Path) -> None:
    """A piece of a batch behind a whole one is not written."""
    log = new_log(tmp_path)
    data = bytearray(batch(b"a"))
    append(log, memoryview(data + data[:20]))
    assert log.size_bytes == len(data)
    assert values_from(log, 0) == [(0, b"a")]


def test_sizes(tmp_path: Path) -> None:
    """A batch of max.message.bytes fits, one more byte does not; nor does one larger than a segment."""
    whole = batch(b"x" * 500)
    log = new_log(tmp_path, max_message_bytes=len(whole))
    append(log, batch(b"x" * 500))
    with pytest.raises(KafkaError) as refused:
        append(log, batch(b"x" * 501))
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    small = new_log(tmp_path, "small-0", internal_segment_bytes=len(whole) - 1)
    with pytest.raises(KafkaError) as refused:
        append(small, batch(b"x" * 500))
    assert refused.value.code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_which_records_are_out_of_time(tmp_path: Path) -> None:
    """The errors name the records by their place in the batch."""
    log = new_log(tmp_path, message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=10)
    times = [NOW_MS, NOW_MS - 1001, NOW_MS - 1000, NOW_MS + 11, NOW_MS + 10, -1]
    with pytest.raises(InvalidRecords) as refused:
        append(log, batch(*[b"v"] * 6, timestamps=times))
    assert refused.value.code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in refused.value.record_errors] == [1, 3]
    append(log, batch(b"v", b"v", timestamps=[NOW_MS - 1000, NOW_MS + 10]))


def test_log_append_time(tmp_path: Path) -> None:
    """The broker's clock is put into the batch, and its CRC is right."""
    log = new_log(tmp_path, message_timestamp_type="LogAppendTime")
    result = log.append(batch(b"a", b"b", timestamps=[1, 2]), leader_epoch=3, now_ms=NOW_MS)
    assert result.log_append_time_ms == NOW_MS
    [view] = views(log.read(0, 1000, upto=2, at_least_one=True))
    assert view.crc_matches()
    assert view.timestamp_type == LOG_APPEND_TIME
    assert view.partition_leader_epoch == 3
    assert [record.timestamp for record in iter_records(view)] == [NOW_MS, NOW_MS]
    with pytest.raises(InvalidRecords) as refused:
        append(log, batch(b"a", timestamp_type=LOG_APPEND_TIME, append_time_ms=NOW_MS))
    assert refused.value.code == ErrorCode.INVALID_TIMESTAMP


def test_create_time_topic_clears_the_type(tmp_path: Path) -> None:
    """A batch that calls itself LogAppendTime becomes CreateTime on such a topic."""
    log = new_log(tmp_path)
    result = log.append(
        batch(b"a", timestamp_type=LOG_APPEND_TIME, append_time_ms=NOW_MS), leader_epoch=0, now_ms=NOW_MS
    )
    assert result.log_append_time_ms == -1
    [view] = views(log.read(0, 1000, upto=1, at_least_one=True))
    assert view.crc_matches()
    assert view.timestamp_type == 0


@pytest.mark.parametrize("codec", list(Codec))
def test_compacted_topic_needs_keys(tmp_path: Path, codec: Codec) -> None:
    """Records without a key are named, whatever the codec."""
    log = new_log(tmp_path, cleanup_policy=frozenset({"compact"}))
    with pytest.raises(InvalidRecords) as refused:
        append(log, batch(b"a", b"b", b"c", keys=[b"k", None, b""], codec=codec))
    assert refused.value.code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.value.record_errors] == [1]
    append(log, batch(b"a", keys=[b"k"], codec=codec))


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
def test_compression_type(tmp_path: Path, source: Codec, target: str) -> None:
    """A batch is stored with the codec that compression.type names, the producer's if none."""
    log = new_log(tmp_path, compression_type=target)
    append(log, producer_batch(3, sequence=0, codec=source))
    [view] = views(log.read(0, 1000, upto=3, at_least_one=True))
    expected = {"uncompressed": Codec.NONE, "producer": source}.get(target)
    assert view.codec == (Codec[target.upper()] if expected is None else expected)
    assert view.crc_matches()
    assert [record.value for record in iter_records(view)] == [b"0", b"1", b"2"]
    assert (view.producer_id, view.base_sequence, view.records_count) == (7, 0, 3)


@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", 1, 9), ("lz4", 1, 12), ("zstd", 1, 19)])
def test_compression_level(tmp_path: Path, codec: str, low: int, high: int) -> None:
    """A batch is compressed anew with the level of the topic, which makes a difference."""
    text = b" ".join(b"%d is %s" % (number, b"odd" if number % 2 else b"even") for number in range(4000))
    stored = []
    for level in (low, high):
        settings: dict[str, Any] = {"compression_type": codec, f"compression_{codec}_level": level}
        log = new_log(tmp_path, f"t-{level}", **settings)
        append(log, batch(text))
        assert values_from(log, 0) == [(0, text)]
        [view] = views(log.read(0, 100_000, upto=1, at_least_one=True))
        assert bytes(view.payload) == compress(Codec[codec.upper()], batch_payload(view), level)
        stored.append(bytes(view.payload))
    assert stored[0] != stored[1]


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_read_only_buffers(tmp_path: Path, kind: Callable[[Any], Any]) -> None:
    """Offsets are patched into the caller's buffer, or into a copy if that cannot be written."""
    log = new_log(tmp_path)
    append(log, batch(b"first"))
    data = kind(batch(b"a"))
    append(log, memoryview(data), epoch=4)
    assert BatchView(memoryview(data)).base_offset == (0 if kind is bytes else 1)
    [_, view] = views(log.read(0, 1000, upto=2, at_least_one=True))
    assert (view.base_offset, view.partition_leader_epoch) == (1, 4)


def times_of(log: Log) -> list[tuple[int, int]]:
    """Base and greatest timestamp of every batch."""
    found = views(log.read(0, 1 << 20, upto=log.log_end_offset, at_least_one=True))
    assert all(view.crc_matches() for view in found)
    return [(view.base_timestamp - NOW_MS, view.max_timestamp - NOW_MS) for view in found]


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("count", [3, FULLY_READ_RECORDS, FULLY_READ_RECORDS + 1])
def test_a_greatest_timestamp_below_that_of_the_records(tmp_path: Path, codec: Codec, count: int) -> None:
    """It is put right, so that the records are found by their time."""
    log = new_log(tmp_path)
    times = [NOW_MS + number for number in range(count)]
    data = put(">q", 35, NOW_MS)(bytearray(batch(*[b"v"] * count, timestamps=times, codec=codec)))
    append(log, memoryview(data))
    assert times_of(log) == [(0, count - 1)]
    assert log.offset_for_timestamp(NOW_MS + count - 1) == (NOW_MS + count - 1, count - 1, 0)
    assert log.max_timestamp_offset() == (NOW_MS + count - 1, count - 1, 0)


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_greatest_timestamp_that_no_record_has(tmp_path: Path, codec: Codec) -> None:
    """A small batch gets the right one; in a large one it stays, and does not hide what follows."""
    log = new_log(tmp_path)
    large = 2 * FULLY_READ_RECORDS
    for count in (3, large):
        data = batch(*[b"v"] * count, timestamps=[NOW_MS] * count, codec=codec)
        append(log, memoryview(put(">q", 35, NOW_MS + 50)(bytearray(data))))
    append(log, batch(b"v", timestamps=[NOW_MS + 20]))
    assert times_of(log) == [(0, 0), (0, 50), (20, 20)]
    assert log.offset_for_timestamp(NOW_MS + 10) == (NOW_MS + 20, 3 + large, 0)
    assert log.max_timestamp_offset() == (NOW_MS, 3, 0)


@pytest.mark.parametrize("count", [3, 500])
def test_recompressed_batches_are_numbered_anew(tmp_path: Path, count: int) -> None:
    """Where the topic names a codec, offsets that are not 0, 1, 2 become so, and the first time is the base."""
    log = new_log(tmp_path, compression_type="lz4")
    records = [Record(2 * number, NOW_MS + number, b"k", b"v") for number in range(count)]
    data = bytearray(build_batch(records, codec=Codec.GZIP, last_offset=count - 1))
    append(log, memoryview(put(">q", 27, NOW_MS - 5)(data)))
    [view] = views(log.read(0, 1 << 20, upto=count, at_least_one=True))
    found = list(iter_records(view))
    assert [record.offset for record in found] == list(range(count))
    assert view.base_timestamp == found[0].timestamp == NOW_MS - 5
    assert view.max_timestamp == found[-1].timestamp == NOW_MS - 5 + count - 1


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("count", [3, 500])
def test_compressed_batches_that_lie(tmp_path: Path, codec: Codec, count: int) -> None:
    """Counts, numbers and streams that are not what the header says."""
    log = new_log(tmp_path)
    good = bytearray(batch(*[b"value"] * count, codec=codec))
    counted = [put(">i", 23, count - 1 + by)(put(">i", 57, count + by)(good.copy())) for by in (1, -1)]
    records = [Record(number + 1, NOW_MS, b"k", b"v") for number in range(count)]
    shifted = bytearray(build_batch(records, codec=codec, last_offset=count - 1))
    cut = put(">i", 8, len(good) - 4 - 12)(good[:-4])
    for bad in (*counted, shifted, cut):
        with pytest.raises(KafkaError) as refused:
            log.append(memoryview(bad), leader_epoch=0, now_ms=NOW_MS)
        assert refused.value.code == ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 0


@pytest.mark.usefixtures("in_python")
def test_what_is_costly(tmp_path: Path) -> None:
    """Large batches that must be opened; and small ones that turn out to be large."""
    plain, compacted = rules_of(TopicConfig()), rules_of(TopicConfig(cleanup_policy=frozenset({"compact"})))
    small, large = batch(b"v"), batch(os.urandom(CHEAP_BYTES))
    assert [is_costly(each, plain) for each in (small, large)] == [False, False]
    assert [is_costly(each, compacted) for each in (small, large)] == [False, True]
    assert not is_costly(batch(os.urandom(CHEAP_BYTES), codec=Codec.LZ4), plain)
    noise = os.urandom(CHEAP_OPENED_BYTES)
    assert not is_costly(batch(noise[: CHEAP_OPENED_BYTES // 2], codec=Codec.LZ4), plain)
    assert is_costly(batch(noise, codec=Codec.LZ4), plain)
    assert is_costly(batch(noise[: CHEAP_OPENED_BYTES // 2], codec=Codec.GZIP), plain)
    assert is_costly(batch(*[b"v"] * (CHEAP_RECORDS_TO_PASS + 1)), plain)
    packed = batch(bytes(CHEAP_OPENED_BYTES), codec=Codec.ZSTD)
    assert not is_costly(packed, plain)
    with pytest.raises(CostlyBatch):
        prepare_client_batch(packed, plain, NOW_MS, may_take_long=False)
    assert prepare_client_batch(packed, plain, NOW_MS).records_count == 1


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_reading_many_records_is_costly(codec: Codec) -> None:
    """A batch whose records must all be read after all, because its header lies or to name those that are wrong."""
    plain = rules_of(TopicConfig())
    for count in (CHEAP_RECORDS_TO_READ, CHEAP_RECORDS_TO_READ + 1):
        records = [Record(number, NOW_MS, b"k", b"v") for number in range(count)]
        late = [Record(number, NOW_MS + 2 * 3_600_000, b"k", b"v") for number in range(count)]
        lying = bytearray(build_batch(records, codec=codec))
        patch_timestamp(lying, 0, 0, NOW_MS - 1)
        wrong = memoryview(build_batch(late, codec=codec))
        if count == CHEAP_RECORDS_TO_READ:
            prepared = prepare_client_batch(memoryview(lying), plain, NOW_MS, may_take_long=False)
            assert prepared.max_timestamp == NOW_MS
            with pytest.raises(InvalidRecords):
                prepare_client_batch(wrong, plain, NOW_MS, may_take_long=False)
        else:
            for each in (memoryview(lying), wrong):
                with pytest.raises(CostlyBatch):
                    prepare_client_batch(each, plain, NOW_MS, may_take_long=False)
