"""The log: reading at every offset, rolling, time, high watermark, deletion, truncation, flushing."""

import gc
import os
import struct
import threading
import weakref
from pathlib import Path

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.files import LogFile, OsFileSystem
from ottla.log_store.log import Log
from ottla.log_store.retention import SegmentFacts, segments_before_log_start, segments_past_retention
from ottla.log_store.timestamps import TimestampOffset
from ottla.log_store.validation import AppendOrigin
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.compression import Codec
from tests.log_store.batches import (
    NOW_MS,
    TOPIC_ID,
    append,
    batch,
    new_log,
    producer_batch,
    reopen,
    values_from,
    views,
)


def test_files_of_a_new_log(tmp_path: Path) -> None:
    """A new partition has the files Kafka makes, and the indexes take no space."""
    log = new_log(tmp_path)
    sizes = {each.name: each.stat().st_size for each in Path(log.directory).iterdir()}
    assert sizes == {
        "00000000000000000000.log": 0,
        "00000000000000000000.index": 10 * 1024 * 1024,
        "00000000000000000000.timeindex": 10 * 1024 * 1024 // 12 * 12,
        "leader-epoch-checkpoint": 0,
        "partition.metadata": 43,
    }
    log.close()
    assert os.stat(log.path_of("00000000000000000000.index")).st_size == 0


def test_a_new_log_of_a_known_epoch_writes_no_file_at_its_first_append(tmp_path: Path) -> None:
    """The epoch is in its file from the beginning, and comes back from there."""
    log = Log.create(tmp_path / "orders-0", TOPIC_ID, TopicConfig(), now_ms=NOW_MS, leader_epoch=4)
    path = tmp_path / "orders-0" / "leader-epoch-checkpoint"
    assert path.read_text() == "0\n1\n4 0\n"
    made = path.stat().st_ino, path.stat().st_mtime_ns
    log.append(batch(b"one"), leader_epoch=4, now_ms=NOW_MS)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == made
    log.close()
    assert reopen(log, clean=True).leader_epochs.latest_epoch == 4


def test_a_released_log_is_gone_without_the_collector(tmp_path: Path) -> None:
    """Nothing in it leads back to it: a broker keeps the collector from its partitions."""
    log = new_log(tmp_path)
    append(log, producer_batch(sequence=0))
    log.flush()
    gone = weakref.ref(log)
    gc.disable()
    try:
        log.release()
        del log
        assert gone() is None
    finally:
        gc.enable()


def test_read_at_every_offset(tmp_path: Path) -> None:
    """Any offset, also inside a batch, gives the batch that holds it first; across segments too."""
    log = new_log(tmp_path, internal_segment_bytes=1500, index_interval_bytes=200)
    expected = []
    for number in range(60):
        values = [b"%d.%d" % (number, index) for index in range(1 + number % 4)]
        base = append(log, batch(*values))
        expected += [(base + index, value) for index, value in enumerate(values)]
    assert len(log.segments) > 2
    for _ in range(2):
        for offset, _ in expected:
            assert values_from(log, offset) == expected[offset:]
            [first, *_] = views(log.read(offset, 1, upto=log.log_end_offset, at_least_one=True))
            assert first.base_offset <= offset <= first.last_offset
        log.flush()
        log.close()
        log = reopen(log, clean=True)


def test_bytes_are_the_producers(tmp_path: Path) -> None:
    """What is read is what was sent, but for offset and leader epoch."""
    log = new_log(tmp_path)
    append(log, batch(b"x"))
    sent = bytes(batch(b"a" * 50, b"b", codec=Codec.ZSTD))
    append(log, memoryview(bytearray(sent)), epoch=9)
    read = log.read(1, 10_000, upto=3, at_least_one=False)
    assert read.records is not None
    assert read.records.read() == struct.pack(">q", 1) + sent[8:12] + struct.pack(">i", 9) + sent[16:]


def test_limits_of_a_read(tmp_path: Path) -> None:
    """max_bytes cuts the slice, at_least_one keeps the first batch whole, upto hides what follows."""
    log = new_log(tmp_path)
    sizes = []
    for number in range(4):
        records = batch(b"v" * (100 * number + 10))
        sizes.append(len(records))
        append(log, records)
    read = log.read(1, sizes[1] + 5, upto=4, at_least_one=True)
    assert read.records is not None
    assert (read.records.position, len(read.records)) == (sizes[0], sizes[1] + 5)
    assert log.read(1, sizes[1] - 1, upto=4, at_least_one=False).records is None
    assert log.read(1, 0, upto=4, at_least_one=False).records is None
    whole = log.read(1, 1, upto=4, at_least_one=True).records
    assert whole is not None
    assert len(whole) == sizes[1]
    for upto in range(5):
        offsets = [view.base_offset for view in views(log.read(0, 10_000, upto=upto, at_least_one=True))]
        assert offsets == list(range(upto))
    assert log.read(4, 100, upto=4, at_least_one=True).records is None
    for offset in (-1, 5):
        with pytest.raises(KafkaError) as refused:
            log.read(offset, 100, upto=4, at_least_one=True)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_upto_inside_older_segments(tmp_path: Path) -> None:
    """A bound in an older segment ends the read there, and one at a segment's end reads it whole."""
    log = new_log(tmp_path, internal_segment_bytes=400, index_interval_bytes=0)
    for number in range(20):
        append(log, batch(b"%d" % number))
    assert len(log.segments) > 3
    for start in range(20):
        for upto in range(21):
            read = views(log.read(start, 100_000, upto=upto, at_least_one=True))
            offsets = [view.base_offset for view in read]
            end_of_segment = next((s.base_offset for s in log.segments if s.base_offset > start), 20)
            assert offsets == list(range(start, min(upto, end_of_segment)))


def test_roll_by_size(tmp_path: Path) -> None:
    """A batch that would make a segment too large goes into the next."""
    size = len(batch(b"v" * 100))
    log = new_log(tmp_path, internal_segment_bytes=size * 3)
    for _ in range(7):
        append(log, batch(b"v" * 100))
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
    assert log.has_unflushed_segments
    names = sorted(os.listdir(log.directory))
    assert "00000000000000000003.snapshot" in names
    assert os.stat(log.path_of("00000000000000000000.index")).st_size == 0
    assert os.stat(log.path_of("00000000000000000000.timeindex")).st_size == 12
    assert os.stat(log.path_of("00000000000000000006.index")).st_size == 10 * 1024 * 1024


def test_roll_by_time(tmp_path: Path) -> None:
    """The age of a segment is told by its records, or by the clock if they have no time."""
    log = new_log(tmp_path, segment_ms=1000)
    append(log, batch(b"a", timestamps=[5000]), now_ms=NOW_MS)
    append(log, batch(b"b", timestamps=[6000]), now_ms=NOW_MS + 5000)
    assert len(log.segments) == 1
    append(log, batch(b"c", timestamps=[6001]), now_ms=NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    timeless = new_log(tmp_path, "timeless-0", segment_ms=1000)
    for now, count in ((NOW_MS, 1), (NOW_MS + 1000, 1), (NOW_MS + 1001, 2)):
        append(timeless, batch(b"a", timestamps=[-1]), now_ms=now)
        assert len(timeless.segments) == count


def test_roll_jitter(tmp_path: Path) -> None:
    """Jitter makes a segment younger by a random time below segment.jitter.ms."""
    jitters = set()
    for number in range(20):
        log = new_log(tmp_path, f"t-{number}", segment_ms=1000, segment_jitter_ms=500)
        jitters.add(log.active_segment.roll_jitter_ms)
    assert len(jitters) > 1
    assert all(0 <= jitter < 500 for jitter in jitters)


def test_roll_by_full_index(tmp_path: Path) -> None:
    """A full index ends its segment: of 24 bytes the time index has two entries, one kept free."""
    log = new_log(tmp_path, segment_index_bytes=24, index_interval_bytes=0)
    for number in range(10):
        append(log, batch(b"v", timestamps=[NOW_MS + number]))
    assert len(log.segments) == 5
    for segment in log.segments[:-1]:
        assert segment.time_index.entries == segment.offset_index.entries + 0 <= 2
    assert values_from(log, 0) == [(number, b"v") for number in range(10)]


def test_roll_by_offset_distance(tmp_path: Path) -> None:
    """An offset more than 2^31-1 beyond the base begins a new segment."""
    log = new_log(tmp_path)
    for offset in (0, 0x7FFFFFFF, 0x80000000):
        records = batch(b"v", base_offset=offset, partition_leader_epoch=0)
        append(log, records, origin=AppendOrigin.REPLICATION)
    assert [segment.base_offset for segment in log.segments] == [0, 0x80000000]
    assert log.log_end_offset == 0x80000001
    assert [view.base_offset for view in views(log.read(1, 1000, upto=1 << 40, at_least_one=True))] == [
        0x7FFFFFFF
    ]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_offset_for_timestamp(tmp_path: Path, codec: Codec) -> None:
    """The first record at or after a time is found inside its batch, in every segment, after restart."""
    log = new_log(tmp_path, internal_segment_bytes=1200, index_interval_bytes=150)
    times = []
    for number in range(40):
        stamps = [NOW_MS + (number * 10 + index * 7) % 400 + number for index in range(3)]
        append(log, batch(b"a", b"b", b"c", timestamps=stamps, codec=codec), epoch=number // 20)
        times += stamps
    assert len(log.segments) > 2
    for _ in range(2):
        for asked in range(NOW_MS - 5, NOW_MS + 450, 3):
            offset = next((n for n, time in enumerate(times) if time >= asked), None)
            expected = None if offset is None else TimestampOffset(times[offset], offset, offset // 60)
            assert log.offset_for_timestamp(asked) == expected
        newest = times.index(max(times))
        assert log.max_timestamp_offset() == TimestampOffset(max(times), newest, newest // 60)
        log.flush()
        log.close()
        log = reopen(log, clean=True)
    log.delete_records_before(50)
    offset = next(n for n, time in enumerate(times) if time >= NOW_MS and n >= 50)
    found = log.offset_for_timestamp(NOW_MS)
    assert found is not None
    assert found.offset == offset


def test_no_timestamps(tmp_path: Path) -> None:
    """An empty log, and one of records without time, have no offset for a time."""
    log = new_log(tmp_path)
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() is None
    append(log, batch(b"a", timestamps=[-1]))
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() == (-1, 0, 0)  # as Kafka answers


def test_high_watermark(tmp_path: Path) -> None:
    """It only grows, and never beyond the end."""
    log = new_log(tmp_path)
    log.append(batch(b"a", b"b"), leader_epoch=0, now_ms=NOW_MS)
    assert log.high_watermark == 0
    assert log.advance_high_watermark(1)
    assert not log.advance_high_watermark(0)
    assert log.advance_high_watermark(99)
    assert log.high_watermark == log.last_stable_offset == 2


def test_delete_records(tmp_path: Path) -> None:
    """The log start moves, whole segments before it go, and a reader of one of them can read on."""
    log = new_log(tmp_path, internal_segment_bytes=400)
    for number in range(20):
        append(log, batch(b"%d" % number), epoch=number // 10)
    old = log.read(0, 10, upto=20, at_least_one=True).records
    assert old is not None
    before = old.read()
    bases = [segment.base_offset for segment in log.segments]
    middle = bases[2] + 1
    assert log.delete_records_before(middle) == middle
    assert [segment.base_offset for segment in log.segments] == bases[2:]
    assert values_from(log, middle)[0] == (middle, b"%d" % middle)
    with pytest.raises(KafkaError) as refused:
        log.read(middle - 1, 10, upto=20, at_least_one=True)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.purge_deleted_files() >= 6
    assert not [name for name in os.listdir(log.directory) if name.endswith(".deleted")]
    assert old.read() == before
    assert log.delete_records_before(3) == middle
    with pytest.raises(KafkaError) as refused:
        log.delete_records_before(21)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    log.close()
    log = reopen(log, clean=True)
    assert log.log_start_offset == middle
    assert log.leader_epochs.entries == [(1, middle)]  # whether or not the file has been written since
    assert log.delete_records_before(-1) == 20
    assert log.leader_epochs.entries == [(1, 20)]


def test_truncate(tmp_path: Path) -> None:
    """Everything from an offset on goes, a batch that holds it as a whole, and appends go on there."""
    log = new_log(tmp_path, internal_segment_bytes=500, index_interval_bytes=100)
    for number in range(10):
        append(log, producer_batch(2, sequence=number * 2), epoch=number // 4)
    for offset, end in ((30, 20), (17, 16), (9, 8), (8, 8), (3, 2), (0, 0)):
        log.truncate_to(offset, NOW_MS)
        assert log.log_end_offset == end
        assert [offset for offset, _ in values_from(log, 0)] == list(range(end))
    assert log.size_bytes == 0
    append(log, batch(b"again"))
    assert values_from(log, 0) == [(0, b"again")]


def test_truncation_restores_producers_and_epochs(tmp_path: Path) -> None:
    """After a truncation the producer goes on from what is left, and later epochs are forgotten."""
    log = new_log(tmp_path)
    for number in range(6):
        append(log, producer_batch(sequence=number), epoch=number)
    log.truncate_to(3, NOW_MS)
    assert log.producers.producers[7].last_sequence == 2
    assert log.end_offset_for_epoch(2) == (2, 3)
    assert log.end_offset_for_epoch(3) == (-1, -1)
    assert append(log, producer_batch(sequence=3), epoch=9) == 3


def test_flush_moves_the_recovery_point(tmp_path: Path) -> None:
    """A flush is due after flush.messages records, and moves the recovery point to the end."""
    log = new_log(tmp_path, flush_messages=3)
    due = [log.append(batch(b"v"), leader_epoch=0, now_ms=NOW_MS).flush_due for _ in range(3)]
    assert due == [False, False, True]
    assert log.recovery_point == 0
    log.flush()
    assert (log.recovery_point, log.unflushed_messages) == (3, 0)
    assert not log.append(batch(b"v"), leader_epoch=0, now_ms=NOW_MS).flush_due


def test_config_can_change(tmp_path: Path) -> None:
    """A new config holds from the next append on."""
    log = new_log(tmp_path)
    append(log, batch(b"v" * 100))
    log.update_config(TopicConfig(max_message_bytes=100))
    with pytest.raises(KafkaError):
        append(log, batch(b"v" * 100))
    log.update_config(TopicConfig(internal_segment_bytes=180))
    append(log, batch(b"v" * 100))
    assert len(log.segments) == 2


def test_preallocated_segments(tmp_path: Path) -> None:
    """With preallocate the file has its length from the start and is cut when rolled or closed."""
    log = new_log(tmp_path, internal_segment_bytes=500, preallocate=True)
    path = Path(log.path_of("00000000000000000000.log"))
    append(log, batch(b"v"))
    assert path.stat().st_size == 500
    log.roll(NOW_MS)
    assert path.stat().st_size == log.segments[0].size
    append(log, batch(b"w"))
    log.release()
    log = reopen(log, clean=False, recovery_point=0)
    assert values_from(log, 0) == [(0, b"v"), (1, b"w")]


FACTS = [
    SegmentFacts(0, 100, 1000),
    SegmentFacts(10, 100, 5000),
    SegmentFacts(20, 100, 2000),
    SegmentFacts(30, 50, 9000),
]


@pytest.mark.parametrize(
    ("now_ms", "retention_ms", "retention_bytes", "high_watermark", "expected"),
    [
        (10_000, -1, -1, 35, 0),
        (10_000, 8_999, -1, 35, 1),
        (10_000, 9_000, -1, 35, 0),
        (10_000, 4_000, -1, 35, 3),
        (10_000, 4_000, -1, 20, 2),
        (10_000, 0, -1, 35, 4),
        (10_000, 0, -1, 34, 3),
        (10_000, -1, 350, 35, 0),
        (10_000, -1, 250, 35, 1),
        (10_000, -1, 251, 35, 0),
        (10_000, -1, 0, 35, 4),
        (10_000, 8_999, 150, 35, 2),
    ],
)
def test_retention(
    now_ms: int, retention_ms: int, retention_bytes: int, high_watermark: int, expected: int
) -> None:
    """Which of four segments retention takes."""
    count = segments_past_retention(
        FACTS,
        now_ms=now_ms,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        high_watermark=high_watermark,
        log_end_offset=35,
    )
    assert count == expected


@pytest.mark.parametrize(("log_start", "expected"), [(0, 0), (9, 0), (10, 1), (29, 2), (30, 3), (99, 3)])
def test_segments_before_log_start(log_start: int, expected: int) -> None:
    """The segment that holds the log start stays, and so does the last."""
    assert segments_before_log_start(FACTS, log_start) == expected


def test_delete_old_segments(tmp_path: Path) -> None:
    """Old segments go, also the active one, which a new empty one replaces; compacted topics keep theirs."""
    log = new_log(tmp_path, internal_segment_bytes=400, retention_ms=1000)
    for number in range(20):
        append(log, batch(b"%d" % number, timestamps=[NOW_MS + number]))
    first = log.segments[1].base_offset
    assert log.delete_old_segments(NOW_MS + 1000 + first) == 1
    assert log.log_start_offset == first
    log.update_config(TopicConfig(cleanup_policy=frozenset({"compact"}), retention_ms=1000))
    assert log.delete_old_segments(NOW_MS + 1_000_000) == 0
    log.update_config(TopicConfig(retention_ms=1000))
    assert log.delete_old_segments(NOW_MS + 1_000_000) > 2
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (20, 20, 0)
    assert append(log, batch(b"next")) == 20


def test_coordinator_appends_several_batches(tmp_path: Path) -> None:
    """Batches of the broker itself get their offsets one after the other."""
    log = new_log(tmp_path)
    append(log, batch(b"x"))
    records = memoryview(bytearray(batch(b"a", b"b")) + bytearray(batch(b"c")))
    result = log.append(records, leader_epoch=2, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert (result.base_offset, result.last_offset) == (1, 3)
    assert values_from(log, 0) == [(0, b"x"), (1, b"a"), (2, b"b"), (3, b"c")]


def test_follower_appends_keep_their_offsets(tmp_path: Path) -> None:
    """Fetched batches lie as they came, gaps included, and must not go back."""
    log = new_log(tmp_path)
    for offset in (5, 9):
        append(
            log,
            batch(b"v", base_offset=offset, partition_leader_epoch=offset),
            origin=AppendOrigin.REPLICATION,
        )
    assert log.log_end_offset == 10
    assert log.leader_epochs.entries == [(5, 5), (9, 9)]
    [view] = views(log.read(6, 1000, upto=10, at_least_one=True))
    assert view.base_offset == 9
    with pytest.raises(KafkaError) as refused:
        append(log, batch(b"v", base_offset=9), origin=AppendOrigin.REPLICATION)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_topic_id_must_agree(tmp_path: Path) -> None:
    """A directory of another topic id is not opened; a missing id is filled in."""
    log = new_log(tmp_path)
    log.close()
    with pytest.raises(KafkaError) as refused:
        reopen(log, clean=True, topic_id=bytes(16))
    assert refused.value.code == ErrorCode.INCONSISTENT_TOPIC_ID
    os.unlink(log.path_of("partition.metadata"))
    assert reopen(log, clean=True).topic_id is None
    assert reopen(log, clean=True, topic_id=TOPIC_ID).topic_id == TOPIC_ID
    assert Log.open(log.directory, log.config, now_ms=NOW_MS, clean=True).topic_id == TOPIC_ID


def test_a_large_deleted_file_is_freed_by_a_thread(tmp_path: Path) -> None:
    """Whoever lets go of it last does not wait; a small one, or one that is still there, is closed at once."""
    closed: list[tuple[str, bool]] = []

    class Disk(OsFileSystem):
        """Notes who closes what."""

        def close(self, fd: int) -> None:
            closed.append((names[fd], threading.current_thread() is threading.main_thread()))
            os.close(fd)
            if len(closed) == 3:
                done.set()

    names: dict[int, str] = {}
    disk, done = Disk(), threading.Event()
    for name, size, is_deleted in (
        ("there", 5_000_000, False),
        ("small", 1000, True),
        ("large", 5_000_000, True),
    ):
        file = LogFile.create(disk, str(tmp_path / name))
        names[file.fd] = name
        file.append(bytes(size))
        if is_deleted:
            (tmp_path / name).unlink()
        del file
    assert done.wait(60)
    assert closed == [("there", True), ("small", True), ("large", False)]
