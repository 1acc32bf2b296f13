"""Batches that are written in one go: the log is the same as if each had been appended by itself."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log_store.batch_run import BatchRun, append_run
from ottla.log_store.log import Log
from ottla.log_store.validation import AppendOrigin
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.control import ControlType, build_end_txn_marker
from ottla.wire.records.header import BatchView
from tests.log_store.batches import NOW_MS, append, batch, new_log, producer_batch, reopen, values_from
from tests.log_store.test_faults import FaultyDisk, log_on


def run_of(batches: list[memoryview]) -> BatchRun:
    run = BatchRun()
    for data in batches:
        view = BatchView(data)
        producer = view.producer_id, view.producer_epoch, view.base_sequence
        run.add(data, (view.records_count, view.max_timestamp, *producer))
    return run


def two_logs(directory: Path, segment_bytes: int, index_bytes: int) -> tuple[Log, Log]:
    """With small segments, for one thing done in two ways."""
    config = {
        "segment_bytes": segment_bytes,
        "segment_index_bytes": index_bytes,
        "index_interval_bytes": 500,
        "segment_ms": 20,
    }
    for name in ("one", "other"):
        (directory / name).mkdir()
    return new_log(directory / "one", **config), new_log(directory / "other", **config)


def files_of(log: Log) -> dict[str, bytes]:
    directory = Path(log.directory)
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file()}


runs = st.lists(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from([10, 300, 3000]), st.integers(0, 20)),
        min_size=1,
        max_size=8,
    ),
    min_size=1,
    max_size=12,
)


@given(
    runs=runs, segment_bytes=st.sampled_from([1 << 20, 1 << 15]), index_bytes=st.sampled_from([48, 10_000])
)
@settings(max_examples=60, deadline=None)
def test_the_same_files_as_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    runs: list[list[tuple[int, int, int]]],
    segment_bytes: int,
    index_bytes: int,
) -> None:
    """Log, indexes and what the log says of itself, whatever has to be done in between: None is the worst that comes
    back, and only where a segment is begun."""
    directory = tmp_path_factory.mktemp("logs")
    together, alone = two_logs(directory, segment_bytes, index_bytes)
    for log in (together, alone):
        append(log, batch(b"first"))
    for number, run in enumerate(runs):
        batches = [
            batch(*[bytes([number]) * size] * count, timestamps=[NOW_MS + later] * count)
            for count, size, later in run
        ]
        segments = len(alone.segments)
        expected = [append(alone, memoryview(bytearray(data))) for data in batches]
        gathered = run_of(batches)
        offsets = append_run(together, gathered, 0, NOW_MS)
        if offsets is None:
            assert len(alone.segments) > segments or index_bytes == 48
            offsets = [together.append_prepared(view, 0, NOW_MS).base_offset for view in gathered.batches()]
        else:
            assert len(alone.segments) == segments
        together.advance_high_watermark(together.log_end_offset)
        assert offsets == expected
        assert together.log_end_offset == alone.log_end_offset
        assert together.active_segment.greatest_timestamp == alone.active_segment.greatest_timestamp
    assert values_from(together, 0) == values_from(alone, 0)
    together.close()
    alone.close()
    assert files_of(together) == files_of(alone)


def test_producers_go_on_where_they_were(tmp_path: Path) -> None:
    """Their sequences are remembered, and what is sent again is known, also after a crash."""
    log = new_log(tmp_path)
    append(log, producer_batch(sequence=0, producer_id=1))
    append(log, producer_batch(2, sequence=0, producer_id=2))
    run = run_of(
        [
            producer_batch(2, sequence=1, producer_id=1),
            batch(b"nobody's"),
            producer_batch(sequence=2, producer_id=2),
            producer_batch(3, sequence=3, producer_id=1),
        ]
    )
    assert append_run(log, run, 0, NOW_MS) == [3, 5, 6, 7]
    for opened in (log, reopen(log, clean=False, recovery_point=0)):
        assert opened.producers.producers[1].last_sequence == 5
        assert opened.producers.producers[1].last_offset == 9
        assert opened.producers.producers[2].last_sequence == 2
        again = opened.append(producer_batch(2, sequence=1, producer_id=1), leader_epoch=0, now_ms=NOW_MS)
        assert (again.base_offset, again.duplicate) == (3, True)


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([producer_batch(sequence=0)], id="sent again"),
        pytest.param([producer_batch(sequence=2)], id="left out one"),
        pytest.param([producer_batch(sequence=1), producer_batch(sequence=1)], id="twice in one run"),
        pytest.param([producer_batch(sequence=1), producer_batch(sequence=3)], id="left out one in a run"),
        pytest.param([producer_batch(sequence=1, epoch=1)], id="another epoch"),
        pytest.param(
            [producer_batch(sequence=1), producer_batch(sequence=2, epoch=1)], id="another in a run"
        ),
        pytest.param([producer_batch(sequence=0, producer_id=8)], id="not seen before"),
        pytest.param([batch(b"plain"), producer_batch(sequence=5)], id="the second"),
    ],
)
def test_a_producer_that_must_be_looked_at(tmp_path: Path, batches: list[memoryview]) -> None:
    """Nothing is appended."""
    log = new_log(tmp_path)
    append(log, producer_batch(sequence=0))
    assert append_run(log, run_of(batches), 0, NOW_MS) is None
    assert (log.log_end_offset, log.producers.producers[7].last_sequence) == (1, 0)


def test_a_producer_in_a_transaction_must_be_looked_at(tmp_path: Path) -> None:
    """It may not write outside of it."""
    log = new_log(tmp_path)
    append(log, producer_batch(sequence=0, is_transactional=True))
    assert append_run(log, run_of([producer_batch(sequence=1)]), 0, NOW_MS) is None
    marker = build_end_txn_marker(
        ControlType.COMMIT, timestamp=NOW_MS, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )
    append(log, memoryview(bytearray(marker)), origin=AppendOrigin.COORDINATOR)
    assert append_run(log, run_of([producer_batch(sequence=1)]), 0, NOW_MS) == [2]


def test_an_empty_log_and_a_new_epoch_are_for_single_batches(tmp_path: Path) -> None:
    """The first batch says how old a segment is, and an epoch is written down first."""
    log = new_log(tmp_path)
    assert append_run(log, run_of([batch(b"one")]), 0, NOW_MS) is None
    append(log, batch(b"one"))
    assert append_run(log, run_of([batch(b"two")]), 0, NOW_MS) == [1]
    assert append_run(log, run_of([batch(b"three")]), 1, NOW_MS) is None
    append(log, batch(b"three"), epoch=1)
    assert append_run(log, run_of([batch(b"four")]), 1, NOW_MS) == [3]


def test_a_full_disk_at_every_byte(tmp_path: Path) -> None:
    """Nothing of the run stays, and the log takes nothing any more, as after a batch that comes alone."""
    run = run_of([batch(b"second"), batch(b"third")])
    for room in range(len(run.data)):
        disk = FaultyDisk()
        log = log_on(disk, tmp_path / str(room))
        append(log, batch(b"first"))
        size = log.size_bytes
        disk.room = room
        with pytest.raises(KafkaError) as refused:
            append_run(log, run, 0, NOW_MS)
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (log.log_end_offset, log.size_bytes) == (1, size)
        assert os.fstat(log.active_segment.file.fd).st_size == size
        disk.room = 1 << 40
        assert append_run(log, run, 0, NOW_MS) is None
        with pytest.raises(KafkaError, match="offline"):
            log.append_prepared(next(run.batches()), 0, NOW_MS)
