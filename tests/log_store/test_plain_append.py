"""A small ordinary batch that is appended in few steps: the log is the same as after the usual way."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log_store.log import Log
from ottla.log_store.plain_append import append_plain
from ottla.log_store.producer_entry import LAST_SEQUENCE
from ottla.log_store.validation import AppendOrigin
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.control import ControlType, build_end_txn_marker
from ottla.wire.records.header import BatchView
from tests.log_store.batches import NOW_MS, append, batch, new_log, producer_batch, reopen
from tests.log_store.test_batch_run import files_of, two_logs
from tests.log_store.test_faults import FaultyDisk, log_on

sizes = st.lists(
    st.tuples(
        st.integers(1, 3), st.sampled_from([10, 300, 3000]), st.integers(0, 20), st.sampled_from([-1, 7])
    ),
    min_size=1,
    max_size=40,
)


def plainly(log: Log, data: memoryview, epoch: int = 0) -> int | None:
    view = BatchView(data)
    head = view.records_count, view.max_timestamp, view.producer_id, view.producer_epoch, view.base_sequence
    return append_plain(log, data, head, epoch, NOW_MS, is_transactional=view.is_transactional)


@given(
    sizes=sizes, segment_bytes=st.sampled_from([1 << 20, 1 << 14]), index_bytes=st.sampled_from([48, 10_000])
)
@settings(max_examples=60, deadline=None)
def test_the_same_files_as_the_usual_way(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[tuple[int, int, int, int]],
    segment_bytes: int,
    index_bytes: int,
) -> None:
    """Log, indexes and what is known of producers; None comes back only where a segment or a producer begins."""
    directory = tmp_path_factory.mktemp("logs")
    plain, usual = two_logs(directory, segment_bytes, index_bytes)
    sequence = 0
    for count, size, later, producer_id in sizes:
        data = batch(
            *[bytes(size)] * count,
            timestamps=[NOW_MS + later] * count,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
        )
        segments = len(usual.segments)
        is_first = usual.log_end_offset == 0 or (producer_id >= 0 and sequence == 0)
        expected = append(usual, memoryview(bytearray(data)))
        offset = plainly(plain, data)
        if offset is None:
            assert len(usual.segments) > segments or is_first
            offset = plain.append_prepared(BatchView(data), 0, NOW_MS).base_offset
        else:
            assert len(usual.segments) == segments
        plain.advance_high_watermark(plain.log_end_offset)
        assert offset == expected
        assert plain.log_end_offset == usual.log_end_offset
        sequence += count if producer_id >= 0 else 0
    if sequence:
        assert plain.producers.producers[7].last_sequence == usual.producers.producers[7].last_sequence
    plain.close()
    usual.close()
    assert files_of(plain) == files_of(usual)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(producer_batch(sequence=0), id="sent again"),
        pytest.param(producer_batch(sequence=2), id="left out one"),
        pytest.param(producer_batch(sequence=1, epoch=1), id="another epoch"),
        pytest.param(producer_batch(sequence=0, producer_id=8), id="not seen before"),
    ],
)
def test_a_producer_that_must_be_looked_at(tmp_path: Path, data: memoryview) -> None:
    """Nothing is appended."""
    log = new_log(tmp_path)
    append(log, producer_batch(sequence=0))
    assert plainly(log, data) is None
    assert (log.log_end_offset, log.producers.producers[7].last_sequence) == (1, 0)


def test_one_more_batch_of_a_transaction(tmp_path: Path) -> None:
    """Only where it goes on in the same transaction; then it is there after a restart, too."""
    log = new_log(tmp_path)
    assert plainly(log, producer_batch(sequence=0, is_transactional=True)) is None
    append(log, producer_batch(sequence=0, is_transactional=True))
    assert plainly(log, producer_batch(2, sequence=1, is_transactional=True)) == 1
    assert plainly(log, producer_batch(sequence=3)) is None
    assert plainly(log, producer_batch(sequence=3, epoch=1, is_transactional=True)) is None
    assert plainly(log, producer_batch(sequence=0, producer_id=8, is_transactional=True)) is None
    nobody = {"producer_id": -1, "epoch": -1, "is_transactional": True}
    assert plainly(log, producer_batch(sequence=-1, **nobody)) is None
    for opened in (log, reopen(log, clean=False, recovery_point=0)):
        entry = opened.producers.producers[7]
        assert (entry.last_sequence, entry.current_txn_first_offset) == (2, 0)
        assert opened.last_stable_offset == 0
    marker = build_end_txn_marker(
        ControlType.COMMIT, timestamp=NOW_MS, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )
    append(log, memoryview(bytearray(marker)), origin=AppendOrigin.COORDINATOR)
    assert plainly(log, producer_batch(sequence=3, is_transactional=True)) is None


def test_sequences_go_round(tmp_path: Path) -> None:
    """From the last one to zero, in the middle of a batch."""
    log = new_log(tmp_path)
    append(log, producer_batch(sequence=LAST_SEQUENCE - 1))
    assert plainly(log, producer_batch(2, sequence=LAST_SEQUENCE)) == 1
    for opened in (log, reopen(log, clean=False, recovery_point=0)):
        assert opened.producers.producers[7].last_sequence == 0
        assert plainly(opened, producer_batch(sequence=LAST_SEQUENCE)) is None


def test_an_empty_log_and_a_new_epoch_are_for_the_usual_way(tmp_path: Path) -> None:
    """The first batch says how old a segment is, and an epoch is written down first."""
    log = new_log(tmp_path)
    assert plainly(log, batch(b"one")) is None
    append(log, batch(b"one"))
    assert plainly(log, batch(b"two")) == 1
    assert plainly(log, batch(b"three"), epoch=1) is None
    append(log, batch(b"three"), epoch=1)
    assert plainly(log, batch(b"four"), epoch=1) == 3


def test_a_full_disk_at_every_byte(tmp_path: Path) -> None:
    """Nothing of the batch stays, and the log takes nothing any more."""
    data = batch(b"second")
    for room in range(len(data)):
        disk = FaultyDisk()
        log = log_on(disk, tmp_path / str(room))
        append(log, batch(b"first"))
        size = log.size_bytes
        disk.room = room
        with pytest.raises(KafkaError) as refused:
            plainly(log, data)
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (log.log_end_offset, log.size_bytes) == (1, size)
        assert os.fstat(log.active_segment.file.fd).st_size == size
        disk.room = 1 << 40
        assert plainly(log, data) is None
