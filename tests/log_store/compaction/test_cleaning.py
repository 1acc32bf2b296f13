"""What cleaning keeps of a log, case by case."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.log_store.compaction.job import decode_answer, decode_job, encode_answer, encode_job
from ottla.log_store.compaction.log_cleaning import CleaningResources, DirtyLog, dirtiest, look_at
from ottla.log_store.log import Log
from ottla.wire.errors import KafkaError
from ottla.wire.records.control import ControlType
from ottla.wire.records.header import BatchView
from ottla.wire.records.records import iter_records
from tests.log_store.batches import NOW_MS, append, batch, new_log, reopen
from tests.log_store.compaction.rounds import batches_of, clean_fully, clean_once, end_txn, seen

RETENTION_MS = 1000
COMPACT = frozenset({"compact"})


def compacted_log(path: Path, **config: Any) -> Log:
    return new_log(
        path, cleanup_policy=COMPACT, delete_retention_ms=RETENTION_MS, index_interval_bytes=100, **config
    )


def put(log: Log, *pairs: tuple[bytes, bytes | None], roll: bool = False, **header: Any) -> int:
    """Append one batch of keys and values."""
    values: Any = [value for _, value in pairs]
    offset = append(log, batch(*values, keys=[key for key, _ in pairs], **header))
    if roll:
        log.roll(NOW_MS)
    return offset


def all_batches(log: Log) -> list[BatchView]:
    return [view for view, _ in batches_of(log)]


def offsets(log: Log) -> list[int]:
    return [record.offset for record in seen(log, committed=False)]


@pytest.mark.parametrize("codec", range(5))
def test_batch_that_loses_records(tmp_path: Path, codec: int) -> None:
    """It keeps offsets, timestamps, codec, epoch and producer; the greatest timestamp is that of what stays."""
    log = compacted_log(tmp_path)
    times = [NOW_MS + 5, NOW_MS + 1, NOW_MS + 9]
    producer = {"producer_id": 4, "producer_epoch": 2, "base_sequence": 10}
    put(log, (b"a", b"1"), (b"b", b"2"), (b"c", b"3"), timestamps=times, codec=codec, **producer)
    put(log, (b"c", b"4"), roll=True)
    assert clean_fully(log) == 1
    [first, _] = all_batches(log)
    assert (first.base_offset, first.last_offset, first.records_count) == (0, 2, 2)
    assert (first.producer_id, first.producer_epoch, first.base_sequence, first.last_sequence) == (
        4,
        2,
        10,
        12,
    )
    assert (first.codec, first.max_timestamp, first.partition_leader_epoch) == (codec, NOW_MS + 5, 0)
    assert first.crc_matches()
    assert [(each.offset, each.timestamp) for each in iter_records(first)] == [
        (0, NOW_MS + 5),
        (1, NOW_MS + 1),
    ]
    found = log.max_timestamp_offset()
    assert found is not None
    assert found.offset == 0


def test_untouched_batches_keep_their_bytes(tmp_path: Path) -> None:
    """What loses nothing is copied as it is."""
    log = compacted_log(tmp_path)
    for number in range(5):
        put(log, (b"%d" % number, b"v" * number), codec=number)
    log.roll(NOW_MS)
    before = [bytes(view.data) for view in all_batches(log)]
    clean_fully(log)
    assert [bytes(view.data) for view in all_batches(log)] == before


def test_last_of_a_key_within_a_batch(tmp_path: Path) -> None:
    """Of several records of a key in one batch the last one stays."""
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"a", b"3"), roll=True)
    clean_fully(log)
    assert offsets(log) == [1, 3]


def test_keyless_records_go(tmp_path: Path) -> None:
    """Records without a key, from before the topic was compacted, are dropped; an empty key is a key."""
    log = new_log(tmp_path, index_interval_bytes=100)
    append(log, batch(b"1", b"2", b"3", keys=[None, b"", b"a"]))
    append(log, batch(b"4", b"5", keys=[None, None]))
    append(log, batch(b"6", keys=[b""]))
    log.roll(NOW_MS)
    clean_fully(log)
    assert offsets(log) == [2, 5]


def test_tombstones(tmp_path: Path) -> None:
    """One stays until delete.retention.ms after the round that first met it (KIP-534), then it goes."""
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None), (b"c", b"1"), timestamps=[NOW_MS + 3, NOW_MS + 4], roll=True)
    clean_fully(log)
    assert offsets(log) == [1, 2, 3]
    view = all_batches(log)[-1]
    assert view.has_delete_horizon
    assert view.base_timestamp == NOW_MS + RETENTION_MS
    assert [each.timestamp for each in iter_records(view)] == [NOW_MS + 3, NOW_MS + 4]
    put(log, (b"d", b"1"), roll=True)
    clean_fully(log, NOW_MS + RETENTION_MS - 1)
    assert offsets(log) == [1, 2, 3, 4]
    put(log, (b"e", b"1"), roll=True)
    clean_fully(log, NOW_MS + RETENTION_MS)
    assert offsets(log) == [1, 3, 4, 5]


def test_last_sequence_is_kept(tmp_path: Path) -> None:
    """The batch with a producer's last sequence stays as an empty header, so that a duplicate is still recognised."""
    log = compacted_log(tmp_path)
    producer = {"producer_id": 4, "producer_epoch": 0}
    for sequence in range(2):
        put(log, (b"a", b"1"), base_sequence=sequence, **producer)
    put(log, (b"a", b"2"), roll=True)
    clean_fully(log)
    assert [(view.base_offset, view.records_count) for view in all_batches(log)] == [(1, 0), (2, 1)]
    log.release()
    log = reopen(log, clean=False, recovery_point=0)
    again = batch(b"1", keys=[b"a"], base_sequence=1, **producer)
    result = log.append(again, leader_epoch=0, now_ms=NOW_MS)
    assert (result.duplicate, result.base_offset) == (True, 1)
    put(log, (b"a", b"3"), base_sequence=2, roll=True, **producer)
    clean_fully(log)
    assert [view.base_offset for view in all_batches(log)] == [3]


def test_transactions(tmp_path: Path) -> None:
    """Aborted data goes at once; a marker goes after its data, and after its delete horizon; fencing survives."""
    log = compacted_log(tmp_path)
    txn = {"producer_id": 4, "producer_epoch": 0, "is_transactional": True}
    put(log, (b"a", b"aborted"), base_sequence=0, **txn)
    end_txn(log, ControlType.ABORT, 4)
    put(log, (b"a", b"committed"), base_sequence=1, **txn)
    end_txn(log, ControlType.COMMIT, 4)
    put(log, (b"z", b"end"), roll=True)
    clean_fully(log)
    assert [record.value for record in seen(log)] == [b"committed", b"end"]
    assert [view.base_offset for view in all_batches(log)] == [1, 2, 3, 4]
    put(log, (b"a", b"newer"), (b"y", b""), roll=True)
    clean_fully(log, NOW_MS + 1)
    views = {view.base_offset: view for view in all_batches(log)}
    assert list(views) == [1, 2, 3, 4, 5]
    assert views[1].has_delete_horizon  # no data of the aborted transaction was met
    assert views[2].records_count == 0  # the last sequence of the producer
    put(log, (b"x", b""), roll=True)
    clean_fully(log, NOW_MS + 2 * RETENTION_MS)
    assert [view.base_offset for view in all_batches(log)] == [2, 3, 4, 5, 7]
    assert log.segments[0].txn_index.entries == []
    log.release()
    log = reopen(log, clean=False, recovery_point=0)
    assert log.last_stable_offset == log.log_end_offset
    assert log.producers.producers[4].last_sequence == 1


def test_open_transaction_is_not_touched(tmp_path: Path) -> None:
    """Nothing at or after the last stable offset is cleaned."""
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"), roll=True)
    put(log, (b"a", b"2"), producer_id=4, producer_epoch=0, base_sequence=0, is_transactional=True, roll=True)
    put(log, (b"a", b"3"), roll=True)
    log.flush()
    dirty = look_at(log, NOW_MS)
    assert dirty is not None
    assert dirty.offsets.first_uncleanable_offset == 1
    clean_fully(log)
    assert offsets(log) == [0, 1, 2]
    end_txn(log, ControlType.COMMIT, 4)
    clean_fully(log)
    assert offsets(log) == [2]


def test_which_log_is_due(tmp_path: Path) -> None:
    """One whose dirty share exceeds min.cleanable.dirty.ratio, or that has waited for max.compaction.lag.ms."""
    log = compacted_log(tmp_path, min_cleanable_dirty_ratio=0.6)
    put(log, (b"a", bytes(200)), roll=True)
    clean_fully(log)
    put(log, (b"b", bytes(200)), roll=True)
    log.flush()

    def found(now_ms: int = NOW_MS) -> DirtyLog:
        dirty = look_at(log, now_ms)
        assert dirty is not None
        return dirty

    assert found().dirtiness.ratio == 0.5
    assert not found().is_due
    assert dirtiest([found()]) is None
    log.update_config(replace(log.config, max_compaction_lag_ms=1000))
    assert not found(NOW_MS + 1000).is_due
    assert found(NOW_MS + 1001).is_due
    log.update_config(replace(log.config, max_compaction_lag_ms=1 << 62, min_cleanable_dirty_ratio=0.4))
    assert dirtiest([found()]) == found()


def test_many_passes(tmp_path: Path) -> None:
    """A map that holds a few keys takes a round for each few; the outcome is the same."""
    log = compacted_log(tmp_path, internal_segment_bytes=500)
    for number in range(120):
        put(log, (b"k%d" % (number % 30), b"%d" % number))
    log.roll(NOW_MS)
    assert clean_fully(log, resources=CleaningResources(key_map_bytes=500)) > 5
    assert offsets(log) == list(range(90, 120))
    assert look_at(log, NOW_MS) is None


def test_small_segments_are_put_together(tmp_path: Path) -> None:
    """Neighbours become one segment; its indexes find every record."""
    log = compacted_log(tmp_path)
    for number in range(40):
        put(log, (b"%d" % (number // 2), b"%d" % number), timestamps=[NOW_MS + number], roll=number % 4 == 3)
    clean_fully(log)
    assert [segment.base_offset for segment in log.segments] == [0, 40]
    assert log.segments[0].offset_index.entries > 3
    log.close()
    log = reopen(log, clean=True)
    for number in range(1, 40, 2):
        found = log.offset_for_timestamp(NOW_MS + number)
        assert found is not None
        assert found.offset == number
        assert log.segments[0].find(number) is not None
    assert log.producers.snapshot_offsets == [40]


def test_damage_is_not_given_a_right_checksum(tmp_path: Path) -> None:
    """A batch whose bytes changed on the disk stops the round before anything is swapped."""
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1" * 50), (b"b", b"2"))
    put(log, (b"a", b"3"), roll=True)
    with open(log.segments[0].file.path, "r+b") as file:
        file.seek(90)
        file.write(b"X")
    with pytest.raises(KafkaError, match="checksum"):
        clean_once(log)
    assert offsets(log) == [0, 1, 2]


def test_jobs_and_answers_travel(tmp_path: Path) -> None:
    """What goes to the process and back is the same after it."""
    log = compacted_log(tmp_path)
    put(log, (b"a", b"1"), producer_id=4, producer_epoch=0, base_sequence=0, roll=True)
    log.flush()
    dirty = look_at(log, NOW_MS)
    assert dirty is not None
    job = dirty.job(NOW_MS, CleaningResources(1000))
    assert decode_job(encode_job(job)) == job
    result = clean_once(log)
    assert result is not None
    assert decode_answer(encode_answer(result)) == result
