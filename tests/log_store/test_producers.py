"""Producers: which batch is accepted, refused or recognised, and the bytes of a snapshot."""

import struct
from pathlib import Path

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log_store.files import OS_FILE_SYSTEM
from ottla.log_store.producer_entry import BatchMetadata, ProducerEntry
from ottla.log_store.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from ottla.log_store.producer_state import ProducerState
from ottla.log_store.validation import AppendOrigin
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.control import ControlType, build_end_txn_marker
from ottla.wire.records.header import BatchView
from tests.log_store.batches import NOW_MS, append, batch, new_log, producer_batch, reopen

LAST = 0x7FFFFFFF


def entry_with(epoch: int, *sequences: tuple[int, int]) -> ProducerEntry:
    entry = ProducerEntry(7)
    offset = 0
    for first, last in sequences:
        count = (last - first) & LAST
        entry.add_batch(epoch, BatchMetadata(first, last, offset, offset + count, 5))
        offset += count + 1
    return entry


@pytest.mark.parametrize(
    ("epoch", "sequence", "error"),
    [
        (3, 10, None),
        (3, 11, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (3, 9, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (3, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (4, 0, None),
        (4, 10, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (2, 10, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_next_batch(epoch: int, sequence: int, error: ErrorCode | None) -> None:
    """After sequences 0 to 9 of epoch 3, what may come next."""
    entry = entry_with(3, (0, 9))
    if error == ErrorCode.INVALID_PRODUCER_EPOCH:
        with pytest.raises(KafkaError) as refused:
            entry.check_epoch(epoch)
        assert refused.value.code == error
        return
    entry.check_epoch(epoch)
    if error is None:
        entry.check_sequence(epoch, sequence)
        return
    with pytest.raises(KafkaError) as refused:
        entry.check_sequence(epoch, sequence)
    assert refused.value.code == error


def test_sequences_go_round() -> None:
    """After 2^31-1 comes 0, also inside a batch."""
    entry = entry_with(0, (LAST - 1, LAST))
    entry.check_sequence(0, 0)
    around = entry_with(0, (LAST, 2))
    around.check_sequence(0, 3)
    assert around.duplicate_of(0, LAST, 2) is not None


def test_window_of_five() -> None:
    """The last five batches are recognised with their offsets, the sixth last is not."""
    entry = entry_with(0, *[(n * 2, n * 2 + 1) for n in range(6)])
    for n in range(1, 6):
        found = entry.duplicate_of(0, n * 2, n * 2 + 1)
        assert found is not None
        assert (found.first_offset, found.last_offset) == (n * 2, n * 2 + 1)
    assert entry.duplicate_of(0, 0, 1) is None
    assert entry.duplicate_of(0, 2, 2) is None
    assert entry.duplicate_of(1, 2, 3) is None


@given(
    known=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(1, 3)), max_size=8),
    epoch=st.integers(0, 1),
    sequence=st.integers(0, 12),
    count=st.integers(1, 3),
    in_transaction=st.booleans(),
    is_transactional=st.booleans(),
)
def test_a_batch_that_is_plainly_the_next_needs_no_checks(
    known: list[tuple[int, int, int]],
    epoch: int,
    sequence: int,
    count: int,
    in_transaction: bool,
    is_transactional: bool,
) -> None:
    """Whatever is taken for that repeats nothing, would be accepted, and is noted as any other batch is."""
    states = [ProducerState(OS_FILE_SYSTEM, "."), ProducerState(OS_FILE_SYSTEM, ".")]
    for state in states:
        entry = state.producers[7] = ProducerEntry(7)
        first = 0
        for of_epoch, gap, size in known:
            first = (entry.last_sequence + 1 if of_epoch == entry.producer_epoch else 0) + gap // 5
            entry.add_batch(of_epoch, BatchMetadata(first, first + size - 1, 0, size - 1, 5))
        entry.current_txn_first_offset = 3 if in_transaction else None
    view = BatchView(producer_batch(count, sequence=sequence, epoch=epoch, is_transactional=is_transactional))
    found = states[0].next_of(7, epoch, sequence, is_transactional=is_transactional)
    if found is None:
        return
    assert in_transaction == is_transactional
    assert states[1].duplicate_of(view) is None
    states[1].check_client_batch(view)
    states[1].commit_client_batch(view, 100, 9)
    assert states[1].first_unstable_offset is None  # no transaction has begun with it
    found.add_next(view.base_sequence, view.last_sequence, 100, 100 + count - 1, 9)
    for name in ProducerEntry.__slots__:
        assert getattr(states[0].producers[7], name) == getattr(states[1].producers[7], name), name


def test_unknown_producer_begins_anywhere(tmp_path: Path) -> None:
    """A producer whose state has expired goes on where it was."""
    log = new_log(tmp_path)
    append(log, producer_batch(sequence=41))
    append(log, producer_batch(sequence=42))
    assert log.log_end_offset == 2


def test_duplicate_returns_the_original_offset(tmp_path: Path) -> None:
    """A repeated batch is not appended again, also after clean and unclean restarts."""
    log = new_log(tmp_path)
    append(log, batch(b"x"))
    for sequence in range(0, 12, 3):
        append(log, producer_batch(3, sequence=sequence))
    end = log.log_end_offset
    for sequence in range(0, 12, 3):
        result = log.append(producer_batch(3, sequence=sequence), leader_epoch=0, now_ms=NOW_MS)
        assert result.duplicate
        assert (result.base_offset, result.last_offset) == (1 + sequence, 3 + sequence)
    assert log.log_end_offset == end
    log.flush()
    log.close()
    log = reopen(log, clean=True)
    for sequence in (9, 0, 6, 3):
        result = log.append(producer_batch(3, sequence=sequence), leader_epoch=0, now_ms=NOW_MS)
        assert (result.duplicate, result.base_offset) == (True, 1 + sequence)
    log.release()
    log = reopen(log, clean=False, recovery_point=0)
    for sequence in range(0, 12, 3):
        result = log.append(producer_batch(3, sequence=sequence), leader_epoch=0, now_ms=NOW_MS)
        assert (result.duplicate, result.base_offset) == (True, 1 + sequence)
    assert append(log, producer_batch(sequence=12)) == end


def test_window_across_segments_after_restart(tmp_path: Path) -> None:
    """The window is found again in older segments, between batches of others, and has five batches."""
    log = new_log(tmp_path, internal_segment_bytes=300, index_interval_bytes=0)
    offsets = {}
    for sequence in range(8):
        offsets[sequence] = append(log, producer_batch(sequence=sequence))
        append(log, producer_batch(sequence=sequence, producer_id=8))
    assert len(log.segments) > 3
    log.flush()
    log.close()
    log = reopen(log, clean=True)
    for sequence in (4, 3, 7, 5, 6):
        result = log.append(producer_batch(sequence=sequence), leader_epoch=0, now_ms=NOW_MS)
        assert (result.duplicate, result.base_offset) == (True, offsets[sequence])
    for sequence in (2, 9):
        with pytest.raises(KafkaError) as refused:
            log.append(producer_batch(sequence=sequence), leader_epoch=0, now_ms=NOW_MS)
        assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, producer_batch(sequence=8))


@pytest.mark.parametrize("sequence", [5, 0])
def test_refused_batch_leaves_no_trace(tmp_path: Path, sequence: int) -> None:
    """Nothing is written or noted for a batch out of sequence."""
    log = new_log(tmp_path)
    for number in range(7):
        append(log, producer_batch(sequence=number))
    size, end = log.size_bytes, log.log_end_offset
    bad = producer_batch(2, sequence=sequence)
    with pytest.raises(KafkaError) as refused:
        log.append(bad, leader_epoch=0, now_ms=NOW_MS)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (log.size_bytes, log.log_end_offset) == (size, end)
    append(log, producer_batch(sequence=7))


def test_snapshot_bytes() -> None:
    """A snapshot is version 1, CRC-32C, count and 46 bytes a producer."""
    entry = entry_with(2, (0, 4), (5, 9))
    entry.coordinator_epoch = 6
    entry.current_txn_first_offset = 3
    data = encode_snapshot([entry, ProducerEntry(8)])
    body = struct.pack(">i", 2)
    body += struct.pack(">qhiqiqiq", 7, 2, 9, 9, 4, 5, 6, 3)
    body += struct.pack(">qhiqiqiq", 8, -1, -1, -1, 0, -1, -1, -1)
    assert data == struct.pack(">hI", 1, crc32c.crc32c(body)) + body
    loaded, unknown = decode_snapshot(data)
    assert loaded.batches == [BatchMetadata(5, 9, 5, 9, 5)]
    assert (loaded.producer_epoch, loaded.coordinator_epoch, loaded.current_txn_first_offset) == (2, 6, 3)
    assert unknown.batches == []
    assert unknown.current_txn_first_offset is None


def test_corrupt_snapshots() -> None:
    """A changed byte, a cut and another version are noticed."""
    data = encode_snapshot([entry_with(0, (0, 1))])
    for position in range(len(data)):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
    for length in range(len(data)):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(data[:length])


def test_corrupt_snapshot_falls_back(tmp_path: Path) -> None:
    """If the newest snapshot is damaged, the one before and the log give the same state."""
    log = new_log(tmp_path)
    for sequence in range(10):
        append(log, producer_batch(sequence=sequence))
        if sequence == 4:
            log.roll(NOW_MS)
    log.flush()
    log.close()
    newest = Path(log.directory) / f"{10:020d}.snapshot"
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    log = reopen(log, clean=True)
    assert not newest.exists()
    assert log.producers.producers[7].last_sequence == 9
    assert len(log.producers.producers[7].batches) == 5


def test_expiry(tmp_path: Path) -> None:
    """Idle producers are forgotten, but not those inside a transaction."""
    state = ProducerState(OS_FILE_SYSTEM, str(tmp_path), expiration_ms=100)
    idle, busy = ProducerEntry(1), ProducerEntry(2)
    idle.last_timestamp = busy.last_timestamp = 1000
    busy.current_txn_first_offset = 5
    state.producers = {1: idle, 2: busy}
    assert state.remove_expired(1099) == 0
    assert state.remove_expired(1100) == 1
    assert list(state.producers) == [2]


def marker(kind: ControlType, *, producer_id: int = 9, epoch: int = 0, coordinator: int = 1) -> memoryview:
    data = build_end_txn_marker(
        kind, timestamp=NOW_MS, producer_id=producer_id, producer_epoch=epoch, coordinator_epoch=coordinator
    )
    return memoryview(bytearray(data))


def test_transactions_hold_the_last_stable_offset(tmp_path: Path) -> None:
    """It stays at the first open transaction until a marker ends it below the high watermark."""
    log = new_log(tmp_path)
    append(log, batch(b"plain"))
    append(log, producer_batch(2, sequence=0, producer_id=9, is_transactional=True))
    append(log, producer_batch(sequence=0, producer_id=10, is_transactional=True))
    assert log.last_stable_offset == 1
    log.append(marker(ControlType.ABORT), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert log.last_stable_offset == 1
    log.advance_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 3
    append(log, marker(ControlType.COMMIT, producer_id=10), origin=AppendOrigin.COORDINATOR)
    assert log.last_stable_offset == log.log_end_offset == 6
    read = log.read(0, 10_000, upto=6, at_least_one=True)
    [aborted] = log.aborted_transactions(0, read)
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (9, 1, 4)
    assert aborted.last_stable_offset == 3
    log.flush()
    log.release()
    log = reopen(log, clean=False, recovery_point=0)
    assert log.aborted_transactions(0, log.read(0, 10_000, upto=6, at_least_one=True)) == [aborted]
    assert log.last_stable_offset == 6


def test_markers_are_fenced(tmp_path: Path) -> None:
    """Markers of an older coordinator or epoch are refused; so is plain data inside a transaction."""
    log = new_log(tmp_path)
    append(log, producer_batch(sequence=0, producer_id=9, epoch=5, is_transactional=True))
    for bad, version, code in (
        (marker(ControlType.COMMIT, epoch=4), 0, ErrorCode.INVALID_PRODUCER_EPOCH),
        (marker(ControlType.COMMIT, epoch=5), 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (producer_batch(sequence=1, producer_id=9, epoch=5), 0, ErrorCode.INVALID_TXN_STATE),
    ):
        origin = AppendOrigin.COORDINATOR if code != ErrorCode.INVALID_TXN_STATE else AppendOrigin.CLIENT
        with pytest.raises(KafkaError) as refused:
            append(log, bad, origin=origin, transaction_version=version)
        assert refused.value.code == code
    append(
        log,
        marker(ControlType.COMMIT, epoch=5, coordinator=3),
        origin=AppendOrigin.COORDINATOR,
    )
    append(log, producer_batch(sequence=1, producer_id=9, epoch=5, is_transactional=True))
    with pytest.raises(KafkaError) as refused:
        append(
            log,
            marker(ControlType.COMMIT, epoch=5, coordinator=2),
            origin=AppendOrigin.COORDINATOR,
        )
    assert refused.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_producers_outlive_their_records(tmp_path: Path) -> None:
    """After all records were deleted and the broker was stopped, a repeated batch is still known."""
    log = new_log(tmp_path)
    append(log, producer_batch(2, sequence=0))
    log.delete_records_before(2)
    for _ in range(2):
        log.flush()
        log.close()
        log = reopen(log, clean=True)
        result = log.append(producer_batch(2, sequence=0), leader_epoch=0, now_ms=NOW_MS)
        assert (result.duplicate, result.base_offset) == (True, 0)


def test_a_crash_after_all_records_were_deleted(tmp_path: Path) -> None:
    """A marker that is still in the file, but before the log start, says nothing about its producer any more: it goes
    on where it was. The same after another crash."""
    log = new_log(tmp_path)
    append(log, producer_batch(3, sequence=0, is_transactional=True))
    log.roll(NOW_MS)
    marker = build_end_txn_marker(
        ControlType.COMMIT, timestamp=NOW_MS, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )
    append(log, memoryview(bytearray(marker)), origin=AppendOrigin.COORDINATOR)
    log.advance_high_watermark(log.log_end_offset)
    for _ in range(2):
        log.delete_records_before(4)
        log.purge_deleted_files()
        log.release()
        log = reopen(log, clean=False, recovery_point=0)
        assert log.producers.producers == {}
        log.roll(NOW_MS)
    assert append(log, producer_batch(sequence=3, is_transactional=True)) == 4
