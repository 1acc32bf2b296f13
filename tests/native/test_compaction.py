"""A round of compaction with its loops in C writes what one in Python writes, byte for byte, and refuses the same."""

import struct
from collections import Counter
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ottla.log_store.compaction import chunks, cleaner
from ottla.log_store.compaction.job import CleanedGroup, CleaningResult
from ottla.log_store.compaction.log_cleaning import CleaningResources, look_at
from ottla.log_store.compaction.swap import swap_segments
from ottla.log_store.log import Log
from ottla.wire.crc import crc32c
from ottla.wire.errors import KafkaError
from ottla.wire.records.builder import build_batch
from ottla.wire.records.control import ControlType
from ottla.wire.records.records import Record
from tests.log_store.batches import NOW_MS, append, new_log
from tests.log_store.compaction.rounds import clean_fully, end_txn, seen, state_of

ROOMY = CleaningResources(key_map_bytes=1 << 24)
RETENTION_MS = 1000
KEYS = [None, b"", *(b"k%d" % number for number in range(12)), b"long" * 40]

keys = st.sampled_from(KEYS)
values = st.none() | st.binary(max_size=5) | st.sampled_from([b"v" * 60, b"w" * 200])
deltas = st.integers(-3, 3) | st.integers(-200, 200) | st.integers(-(10**10), 10**10)
headers = st.sampled_from([(), (), (("h", b"1"),), (("a", None), ("b", b"2"))])
record = st.tuples(keys, values, deltas, headers)
producers = st.sampled_from([-1, -1, 0, 1, 10, 11])
batch = st.tuples(producers, st.lists(record, min_size=1, max_size=40), st.integers(0, 4), st.booleans())
large = st.tuples(
    st.sampled_from([b"a", b"x" * 70, b"x" * 9000]), st.sampled_from([None, b"v" * 9000]), deltas, headers
)
large_batch = st.tuples(
    producers, st.tuples(record, large, record).map(list), st.integers(0, 4), st.booleans()
)
step = st.one_of(
    batch, batch, batch, large_batch, st.sampled_from(["roll", "commit", "abort", "round", "late round"])
)


class History:
    """A log and what its producers are at."""

    def __init__(self, directory: Path) -> None:
        self.log = new_log(
            directory,
            internal_segment_bytes=20_000,
            index_interval_bytes=100,
            delete_retention_ms=RETENTION_MS,
            message_timestamp_after_max_ms=1 << 60,
        )
        self.now_ms = NOW_MS
        self.sequences: Counter[int] = Counter()
        self.open: set[int] = set()

    def append(self, producer_id: int, records: list[Any], codec: int, append_time: bool) -> None:
        header: dict[str, Any] = {}
        if producer_id >= 0:
            header = {"producer_id": producer_id, "producer_epoch": 0}
            header["base_sequence"] = self.sequences[producer_id]
            header["is_transactional"] = producer_id >= 10
            self.sequences[producer_id] += len(records)
            if producer_id >= 10:
                self.open.add(producer_id)
        if append_time:
            header |= {"timestamp_type": 1, "append_time_ms": self.now_ms}
        made = [
            Record(index, NOW_MS + delta, key, value, record_headers)
            for index, (key, value, delta, record_headers) in enumerate(records)
        ]
        append(self.log, memoryview(bytearray(build_batch(made, codec=codec, **header))))

    def end(self, kind: ControlType) -> None:
        for producer_id in sorted(self.open):
            end_txn(self.log, kind, producer_id)
        self.open.clear()


Outcome = tuple[dict[str, bytes], CleaningResult]


def outcome_of(log: Log, speed: ModuleType | None, now_ms: int) -> tuple[Outcome, list[list[int]]] | None:
    """What a round writes, and which segments that replaces; None if there is nothing to clean."""
    log.flush()
    dirty = look_at(log, now_ms)
    if dirty is None:
        return None
    groups, result = [], None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaner, "speed", speed)
        for answer in cleaner.clean(dirty.job(now_ms, ROOMY), log.fs):
            if isinstance(answer, CleanedGroup):
                groups.append(answer.replaced)
            else:
                result = answer
    assert result is not None
    return ({path.name: path.read_bytes() for path in Path(log.directory).glob("*.cleaned")}, result), groups


def round_both_ways(log: Log, speed: ModuleType, now_ms: int) -> None:
    """Clean a log once in Python and once in C, compare, and swap in what came of it."""
    expected = outcome_of(log, None, now_ms)
    found = outcome_of(log, speed, now_ms)
    assert found == expected
    if found is not None:
        (_, result), groups = found
        for group in groups:
            assert swap_segments(log, group, now_ms)
        log.cleaner_checkpoint = result.end_offset


@given(st.lists(step, min_size=1, max_size=40), st.sampled_from([61, 1000, 1 << 18]))
@settings(max_examples=60, deadline=None)
def test_same_segments(speed: ModuleType, steps: list[Any], chunk_bytes: int) -> None:
    """Whatever a log holds, rounds in between and after the delete horizon included, both write the same files."""
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_CHUNK_BYTES", chunk_bytes)
        history = History(Path(directory))
        for each in [*steps, "commit", "roll", "late round", "late round"]:
            match each:
                case "roll":
                    history.log.roll(NOW_MS)
                case "commit":
                    history.end(ControlType.COMMIT)
                case "abort":
                    history.end(ControlType.ABORT)
                case "round" | "late round":
                    history.now_ms += 2 * RETENTION_MS if each == "late round" else 1
                    round_both_ways(history.log, speed, history.now_ms)
                case _:
                    history.append(*each)
        history.log.release()


def log_of(directory: Path, batches: list[bytes]) -> Log:
    """A log with a segment for each batch, whatever is in it, and an active segment behind them."""
    log = new_log(directory, index_interval_bytes=100)
    for data in batches:
        append(log, memoryview(bytearray(build_batch([Record(0, NOW_MS, b"key", b"value")]))))
        log.roll(NOW_MS)
        log.flush()
        segment = log.segments[-2]
        Path(segment.file.path).write_bytes(struct.pack(">q", segment.base_offset) + data[8:])
        segment.file.size = len(data)
    return log


def complaint(log: Log, speed: ModuleType | None) -> Any:
    """What a round says of a log that may be damaged, or else what it writes."""
    try:
        return outcome_of(log, speed, NOW_MS)
    except KafkaError as error:
        return type(error), str(error)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A batch of a few records in which some bytes are changed, with the right checksum or not."""
    made = [
        Record(index, NOW_MS, key, value, record_headers)
        for index, (key, value, _, record_headers) in enumerate(
            draw(st.lists(record, min_size=1, max_size=9))
        )
    ]
    data = bytearray(build_batch(made, codec=draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4]))))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(57, min(len(data), 90) - 1) | st.integers(61, len(data) - 1))
        data[at] = draw(st.integers(0, 255))
    if draw(st.integers(0, 5)):
        data[17:21] = struct.pack(">I", crc32c(data[21:]))
    if draw(st.integers(0, 9)) == 0:
        data[8:12] = struct.pack(">i", draw(st.integers(-1, len(data) + 5)))
    if draw(st.integers(0, 9)) == 0:
        data[16] = draw(st.integers(0, 4))
    return bytes(data)


@given(damaged())
@settings(max_examples=150, deadline=None)
def test_same_complaint(speed: ModuleType, data: bytes) -> None:
    """Of a batch that does not make sense both say the same, or write the same."""
    with TemporaryDirectory() as directory:
        log = log_of(Path(directory), [data])
        assert complaint(log, speed) == complaint(log, None)
        log.release()


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 40), values), min_size=1, max_size=30), min_size=1),
    st.integers(1, 5000),
)
@settings(max_examples=40, deadline=None)
def test_many_passes(speed: ModuleType, batches: list[list[tuple[int, Any]]], key_map_bytes: int) -> None:
    """However little memory the map has, every round comes further, and consumers end up with the same."""
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaner, "speed", speed)
        log = new_log(Path(directory), internal_segment_bytes=8000, delete_retention_ms=RETENTION_MS)
        for pairs in batches:
            made = [Record(index, NOW_MS, b"%d" % key, value) for index, (key, value) in enumerate(pairs)]
            append(log, memoryview(bytearray(build_batch(made))))
        log.roll(NOW_MS)
        before = state_of(seen(log))
        rounds = clean_fully(log, resources=CleaningResources(key_map_bytes))
        assert 1 <= rounds <= len(batches)
        assert state_of(seen(log)) == before
        counts = Counter(each.key for each in seen(log))
        assert all(count == 1 for count in counts.values())
        log.release()


@pytest.mark.parametrize("max_bytes", [50_000, 1_000_000, 4_000_000, 9_000_000])
def test_memory_of_the_map(speed: ModuleType, max_bytes: int) -> None:
    """The map takes as many keys as Kafka's of that size, and no more memory than it may, but for the last batch."""
    the_round = speed.new_round(max_bytes, bytes(16), 0)
    count, stop = 0, 0
    while stop == 0:
        made = [Record(count + index, NOW_MS, b"%020d" % (count + index), b"") for index in range(500)]
        data = build_batch(made, base_offset=count)
        _, stop = speed.map_batches(the_round, data, 0, False)
        count += 500
        assert speed.round_facts(the_round)[3] < max_bytes * 1.02 + 500 * 32
    latest_offset, _, keys_found, _ = speed.round_facts(the_round)
    assert (latest_offset, keys_found) == (count - 501, count - 500)
    assert keys_found * 24 > 0.85 * max_bytes


@given(st.binary(max_size=200), st.integers(0, 7))
def test_checksum(speed: ModuleType, data: bytes, start: int) -> None:
    """By the processor or by a table, it is what the package computes."""
    view = memoryview(data)[start:]
    assert speed.crc32c(view, False) == speed.crc32c(view, True) == crc32c(view)


@given(st.lists(damaged(), max_size=3), st.binary(max_size=80), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_bytes(speed: ModuleType, batches: list[bytes], tail: bytes, one: bool) -> None:
    """Bytes of any kind are taken to their end or to a place within them, and never followed beyond."""
    data = b"".join(batches) + tail
    the_round = speed.new_round(1 << 20, bytes(16), 0)
    end = speed.whole_batches(data)
    assert 0 <= end <= len(data)
    at, stop = speed.map_batches(the_round, data, 0, one)
    assert 0 <= at <= end
    assert at == end or stop or one
    speed.begin_filter(the_round, NOW_MS, NOW_MS, 0, b"")
    kept, at, stop = speed.filter_batches(the_round, data, 0, one)
    assert 0 <= at <= end
    assert len(kept) <= len(data) + 20 * len(data)
    for first, second in pairwise([*batches, b""]):
        if speed.whole_batches(first) == len(first):
            assert speed.map_opened(the_round, first, second or tail) in range(5)
            assert speed.filter_opened(the_round, first, second or tail)[2] in range(5)
