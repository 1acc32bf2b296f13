"""Small batches are looked at and made anew many at a time: what comes of it is what comes of each by itself."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ottla.log_store.compaction import batch_filter, chunks
from ottla.log_store.compaction.chunks import Chunk
from ottla.log_store.compaction.cleaner import clean
from ottla.log_store.compaction.key_map import KeyMap, RecordFlags
from ottla.log_store.compaction.log_cleaning import CleaningResources, look_at
from ottla.log_store.compaction.rewriting import reduced
from ottla.log_store.compaction.small_batches import FEW, reduced_batches
from ottla.log_store.log import Log
from ottla.wire.records.builder import build_batch
from ottla.wire.records.control import ControlType
from ottla.wire.records.header import CorruptBatch
from ottla.wire.records.key_scan import KeyScan
from ottla.wire.records.records import InvalidRecord, Record
from tests.log_store.batches import NOW_MS, append, new_log
from tests.log_store.compaction.rounds import clean_once, end_txn

LENGTHS = st.integers(0, 120) | st.sampled_from([8000, 8300, 20_000])
DELTAS = st.integers(-3, 3) | st.integers(-200, 200) | st.integers(-(10**10), 10**10)


def chunk_of(*batches: bytes) -> Chunk:
    data = memoryview(b"".join(batches))
    headers, bounds, attributes = chunks._batches_in(data)
    assert bounds[-1] == len(data)
    return Chunk("a.log", 0, data, headers, bounds, attributes)


@st.composite
def batch_and_flags(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A batch of a few records, of which some stay and some go."""
    stays = draw(st.lists(st.booleans(), min_size=2, max_size=FEW).filter(lambda them: len(set(them)) == 2))
    records = [
        Record(
            100 + 3 * index,
            NOW_MS + draw(DELTAS),
            b"key",
            draw(st.none() | LENGTHS.map(bytes)),
            ((("header", b"value"),) if draw(st.booleans()) else ()),
        )
        for index in range(len(stays))
    ]
    header: dict[str, Any] = draw(
        st.sampled_from(
            [{}, {"producer_id": 5, "producer_epoch": 2, "base_sequence": 77, "is_transactional": True}]
        )
    )
    if draw(st.booleans()):
        header = {**header, "timestamp_type": 1, "append_time_ms": NOW_MS + 5}
    data = build_batch(
        records,
        base_offset=100,
        codec=draw(st.integers(0, 4)),
        partition_leader_epoch=draw(st.integers(0, 9)),
        delete_horizon_ms=draw(st.none() | st.just(NOW_MS + 1)),
        last_offset=100 + 3 * len(stays) + 5,
        **header,
    )
    return data, bytes(not each for each in stays)


@given(st.lists(batch_and_flags(), min_size=1, max_size=5))
@settings(max_examples=100, deadline=None)
def test_made_anew_together(given_batches: list[tuple[bytes, bytes]]) -> None:
    """A batch that loses records together with others is the same, byte for byte, as one that does so alone."""
    chunk = chunk_of(*[data for data, _ in given_batches])
    bounds = [0]
    for _, flags in given_batches:
        bounds.append(bounds[-1] + len(flags))
    together = RecordFlags(b"".join(flags for _, flags in given_batches), bounds, ())
    made = reduced_batches(chunk, range(len(given_batches)), together)
    for index, (_, flags) in enumerate(given_batches):
        alone = reduced(chunk.headers[index], bytes(chunk.payload(index)), flags)
        assert made[index] == (alone.data, alone.max_timestamp)


def test_damage_is_found() -> None:
    """A batch that was changed on the disk is not given a new checksum, nor one whose records do not fill it."""
    data = bytearray(build_batch([Record(index, NOW_MS, b"k", b"value") for index in range(3)]))
    flags = RecordFlags(b"\1\0\0", [0, 3], ())
    assert len(reduced_batches(chunk_of(data), [0], flags)) == 1
    for count in (2, 4):
        with pytest.raises(InvalidRecord, match="fill"):
            reduced_batches(chunk_of(data), [0], RecordFlags(b"\1" + bytes(count - 1), [0, count], ()))
    data[-3] ^= 1
    with pytest.raises(CorruptBatch, match="damaged at byte 0"):
        reduced_batches(chunk_of(data), [0], flags)


def test_flags_of_some_batches() -> None:
    """The map is asked for any batches that follow each other, and tells which of them have tombstones."""
    key_map = KeyMap(1 << 20)
    key_map.add(KeyScan([b"a", b"b", b"a", b"c"], [], [1]), [0, 10, 20], [1, 2, 1])
    key_map.add(KeyScan([b"a", b"d", b"d"], [], [0, 2]), [30, 40], [1, 2])
    key_map.seal()
    bases = [0, 10, 20, 30, 40]
    going = [[1], [0, 1], [0], [0], [1, 0]]
    for first in range(5):
        for end in range(first + 1, 6):
            flags = key_map.flags_of(bases[first:end])
            assert flags is not None
            parts = [list(flags.superseded[start:stop]) for start, stop in pairwise(flags.bounds)]
            assert parts == going[first:end]
            assert [first + index for index in flags.with_tombstones] == [
                index for index in (1, 3, 4) if first <= index < end
            ]
    for missing in ([5], [0, 20], [40, 50], [50]):
        assert key_map.flags_of(missing) is None


def write_history(log: Log, steps: list[tuple[int, list[tuple[int, bool]], int]]) -> None:
    """Batches of a plain producer, an idempotent one and two of transactions; a round of cleaning in between."""
    sequences: Counter[int] = Counter()
    has_open: set[int] = set()
    for producer_id, pairs, what in steps:
        if producer_id in has_open and what < 3:
            end_txn(log, ControlType.ABORT if what else ControlType.COMMIT, producer_id)
            has_open.discard(producer_id)
            continue
        if what == 4:
            log.roll(NOW_MS)
            clean_once(log)
        records = [
            Record(index, NOW_MS + index % 3, b"k%d" % key, None if is_tombstone else bytes(key * 7))
            for index, (key, is_tombstone) in enumerate(pairs)
        ]
        header: dict[str, Any] = {}
        if producer_id:
            header = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": sequences[producer_id],
                "is_transactional": producer_id > 1,
            }
            sequences[producer_id] += len(pairs)
            if producer_id > 1:
                has_open.add(producer_id)
        append(log, memoryview(bytearray(build_batch(records, codec=4 if what == 5 else 0, **header))))
    for producer_id in has_open:
        end_txn(log, ControlType.COMMIT, producer_id)
    log.roll(NOW_MS)


def cleaned_files(log: Log, key_map_bytes: int) -> dict[str, bytes]:
    """What a round writes, without swapping it in."""
    log.flush()
    dirty = look_at(log, NOW_MS)
    assert dirty is not None
    list(clean(dirty.job(NOW_MS + 10, CleaningResources(key_map_bytes)), log.fs))
    found = {path.name: path.read_bytes() for path in Path(log.directory).glob("*.cleaned")}
    assert found
    return found


KEYED = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9).map(lambda number: not number)), min_size=1)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), KEYED.map(lambda pairs: pairs[:9]), st.integers(0, 9)),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from([1, 3000, 1 << 20]),
)
@settings(max_examples=40, deadline=None)
def test_however_batches_come(
    steps: list[tuple[int, list[tuple[int, bool]], int]], key_map_bytes: int
) -> None:
    """A round writes the same files whether batches come one by one or many in a chunk."""
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        log = new_log(
            Path(directory),
            internal_segment_bytes=2000,
            index_interval_bytes=100,
            cleanup_policy=frozenset({"compact"}),
            delete_retention_ms=5,
        )
        write_history(log, steps)
        together = cleaned_files(log, key_map_bytes)
        patch.setattr(batch_filter, "FEW", 0)
        patch.setattr(chunks, "_CHUNK_BYTES", 61)
        assert cleaned_files(log, key_map_bytes) == together
        log.release()
