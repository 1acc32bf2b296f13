"""Crashes: what was acknowledged is there after, what was cut off is gone, and the indexes are as before."""

import os
import shutil
from pathlib import Path

import pytest

from ottla.log_store.log import Log
from ottla.log_store.validation import AppendOrigin
from ottla.wire.errors import ErrorCode, KafkaError
from tests.log_store.batches import NOW_MS, append, batch, new_log, producer_batch, reopen, values_from


def crashed(log: Log, directory: Path) -> Log:
    """A copy of the files as they are now, as if the process had died."""
    target = directory / os.path.basename(log.directory)
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(log.directory, target)
    copy = Log(str(target), log.config)
    copy.log_start_offset, copy.recovery_point = log.log_start_offset, log.recovery_point
    copy.segments = []
    return copy


def test_torn_tail_at_every_byte(tmp_path: Path) -> None:
    """Wherever the last batch is cut, recovery keeps all others and appends go on after them."""
    log = new_log(tmp_path)
    for number in range(5):
        append(log, producer_batch(2, sequence=number * 2))
    whole = log.size_bytes
    append(log, producer_batch(2, sequence=10))
    expected = values_from(log, 0)
    for size in range(whole, log.size_bytes + 1):
        copy = crashed(log, tmp_path / "crash")
        os.truncate(copy.path_of("00000000000000000000.log"), size)
        copy = reopen(copy, clean=False)
        is_whole = size == log.size_bytes
        assert values_from(copy, 0) == (expected if is_whole else expected[:10])
        assert os.stat(copy.path_of("00000000000000000000.log")).st_size == (size if is_whole else whole)
        retried = copy.append(producer_batch(2, sequence=10), leader_epoch=0, now_ms=NOW_MS)
        assert (retried.duplicate, retried.base_offset) == (is_whole, 10)
        assert values_from(copy, 0) == expected


def test_damage_at_every_byte(tmp_path: Path) -> None:
    """A changed byte cuts the log at its batch. Offset and leader epoch lie outside of the checksum, as they
    are assigned after it was made."""
    log = new_log(tmp_path)
    for number in range(3):
        append(log, batch(b"%d" % number, b"x"))
    start, end = log.size_bytes * 2 // 3, log.size_bytes
    log.release()
    path = Path(log.path_of("00000000000000000000.log"))
    original = path.read_bytes()
    for position in (*range(start + 8, start + 12), *range(start + 16, end)):
        path.write_bytes(original[:position] + bytes([original[position] ^ 0x80]) + original[position + 1 :])
        copy = reopen(log, clean=False, recovery_point=0)
        assert [offset for offset, _ in values_from(copy, 0)] == [0, 1, 2, 3]
        copy.release()


@pytest.mark.parametrize("garbage", [bytes(1), bytes(500), b"\xff" * 100, b"HTTP/1.1 200 OK" * 9])
def test_garbage_behind_the_end(tmp_path: Path, garbage: bytes) -> None:
    """Bytes that are no batch are cut, after an unclean stop and even after a clean one."""
    for clean in (False, True):
        log = new_log(tmp_path, f"t-{int(clean)}")
        append(log, batch(b"a"))
        log.flush()
        log.close()
        with open(log.path_of("00000000000000000000.log"), "ab") as file:
            file.write(garbage)
        log = reopen(log, clean=clean)
        assert values_from(log, 0) == [(0, b"a")]
        assert append(log, batch(b"b")) == 1
        assert values_from(log, 0) == [(0, b"a"), (1, b"b")]


def test_later_segments_go_with_a_damaged_one(tmp_path: Path) -> None:
    """What follows damage is removed, segments too: no gap appears in the log."""
    log = new_log(tmp_path, internal_segment_bytes=400)
    for number in range(20):
        append(log, batch(b"%d" % number))
    bases = [segment.base_offset for segment in log.segments]
    log.release()
    path = Path(log.path_of(f"{bases[1]:020d}.log"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    log = reopen(log, clean=False, recovery_point=0)
    assert [segment.base_offset for segment in log.segments] == bases[:2]
    assert log.log_end_offset == bases[2] - 1
    log.purge_deleted_files()
    logs = [name for name in os.listdir(log.directory) if name.endswith(".log")]
    assert len(logs) == 2


def test_flushed_segments_are_not_read_again(tmp_path: Path) -> None:
    """Below the recovery point nothing is checked, so damage there is not noticed."""
    log = new_log(tmp_path, internal_segment_bytes=400)
    for number in range(20):
        append(log, batch(b"%d" % number))
    log.flush()
    log.release()
    path = Path(log.path_of("00000000000000000000.log"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    log = reopen(log, clean=False)
    assert log.log_end_offset == 20
    assert log.recovery_point == 20


def test_rebuilt_files_equal_the_first(tmp_path: Path) -> None:
    """Recovery makes the same indexes, epochs and snapshots as the appends did."""
    log = new_log(tmp_path, internal_segment_bytes=3000, index_interval_bytes=300)
    for number in range(120):
        append(
            log,
            producer_batch(2, sequence=number * 2, producer_id=5, codec=number % 5),
            epoch=number // 50,
        )
    assert len(log.segments) > 3
    copy = crashed(log, tmp_path / "crash")
    for name in os.listdir(copy.directory):
        if name.endswith((".index", ".timeindex", ".snapshot")) or name == "leader-epoch-checkpoint":
            os.unlink(copy.path_of(name))
    copy = reopen(copy, clean=False, recovery_point=0)
    for each in (log, copy):
        each.flush()
        each.close()

    def files(log: Log) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in Path(log.directory).iterdir()}

    assert files(copy) == files(log)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_missing_indexes(tmp_path: Path, clean: bool, suffix: str) -> None:
    """A lost index is made anew."""
    log = new_log(tmp_path, internal_segment_bytes=3000, index_interval_bytes=100)
    for number in range(60):
        append(log, batch(b"%d" % number * 10, timestamps=[NOW_MS + number]))
    log.flush()
    log.close()
    expected = {name: Path(log.path_of(name)).read_bytes() for name in os.listdir(log.directory)}
    os.unlink(log.path_of("00000000000000000000" + suffix))
    log = reopen(log, clean=clean, recovery_point=0)
    assert [offset for offset, _ in values_from(log, 0)] == list(range(60))
    log.close()
    assert {name: Path(log.path_of(name)).read_bytes() for name in os.listdir(log.directory)} == expected


def test_older_formats_are_not_cut_away(tmp_path: Path) -> None:
    """A segment in a message format of the past is refused, not emptied."""
    log = new_log(tmp_path)
    append(log, batch(b"a"))
    log.release()
    path = Path(log.path_of("00000000000000000000.log"))
    data = bytearray(path.read_bytes())
    data[16] = 1
    path.write_bytes(data)
    with pytest.raises(KafkaError) as refused:
        reopen(log, clean=False, recovery_point=0)
    assert refused.value.code == ErrorCode.INVALID_RECORD
    assert path.read_bytes() == data


def test_start_beyond_the_end(tmp_path: Path) -> None:
    """If the log start lies beyond what is left, the log begins anew there."""
    log = new_log(tmp_path)
    append(log, batch(b"a", b"b"))
    log.release()
    os.truncate(log.path_of("00000000000000000000.log"), 0)
    log = reopen(log, clean=False, recovery_point=2, log_start_offset=2)
    assert (log.log_start_offset, log.log_end_offset) == (2, 2)
    assert append(log, batch(b"c")) == 2
    assert values_from(log, 2) == [(2, b"c")]


def test_unreadable_small_files(tmp_path: Path) -> None:
    """Damaged leader epochs come back from the batches, a damaged topic id from whoever knows it."""
    log = new_log(tmp_path)
    for number in range(4):
        append(log, batch(b"v"), epoch=number // 2)
    topic_id = log.topic_id
    log.release()
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        Path(log.path_of(name)).write_bytes(b"\xff\0garbage")
    log = reopen(log, clean=False, recovery_point=0, topic_id=topic_id)
    assert log.leader_epochs.entries == [(0, 0), (1, 2)]
    assert log.topic_id == topic_id


def test_interrupted_deletion_and_compaction(tmp_path: Path) -> None:
    """.deleted and .cleaned files go; .swap files take the place of the segments they cover."""
    log = new_log(tmp_path, internal_segment_bytes=400)
    for number in range(12):
        append(log, batch(b"%d" % number))
    bases = [segment.base_offset for segment in log.segments]
    log.flush()
    log.close()
    compacted = new_log(tmp_path, "compacted-0")
    append(compacted, batch(b"0"))
    last = batch(b"last", base_offset=bases[2] - 1, partition_leader_epoch=0)
    append(compacted, last, origin=AppendOrigin.REPLICATION)
    compacted.flush()
    compacted.close()
    for suffix in (".log", ".index", ".timeindex"):
        name = f"{0:020d}{suffix}"
        shutil.copy(compacted.path_of(name), log.path_of(name + ".swap"))
        shutil.copy(compacted.path_of(name), log.path_of(f"{bases[2]:020d}{suffix}.cleaned"))
        shutil.copy(compacted.path_of(name), log.path_of(f"{bases[2]:020d}{suffix}.swap"))
        shutil.copy(compacted.path_of(name), log.path_of(f"{99:020d}{suffix}.deleted"))
    log = reopen(log, clean=True)
    assert [segment.base_offset for segment in log.segments] == [0, *bases[2:]]
    expected = [(0, b"0"), (bases[2] - 1, b"last")]
    expected += [(number, b"%d" % number) for number in range(bases[2], 12)]
    assert values_from(log, 0) == expected
    assert not [name for name in os.listdir(log.directory) if name.endswith(("swap", "cleaned", "deleted"))]
