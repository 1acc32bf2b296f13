"""Crashes: what was acknowledged is there after, what was cut off is gone, and the indexes are as before."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ottla.log_store.log import Log
from ottla.log_store.recovery import DamagedLog
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


def segments_of(tmp_path: Path, count: int = 20, **config: Any) -> Log:
    """A log with several segments, none of it flushed."""
    tmp_path.mkdir(exist_ok=True)
    log = new_log(tmp_path, internal_segment_bytes=400, **config)
    for number in range(count):
        append(log, batch(b"%d" % number))
    assert len(log.segments) > 3
    return log


def change_byte(log: Log, base_offset: int, position: int) -> bytes:
    """Damage one byte of a segment; returns what the file then holds."""
    path = Path(log.path_of(f"{base_offset:020d}.log"))
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    return bytes(data)


def test_later_segments_go_with_one_cut_short(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If the end of a segment that was not flushed is gone, so are those behind it: no gap appears. One line
    tells it."""
    log = segments_of(tmp_path)
    bases = [segment.base_offset for segment in log.segments]
    size = log.segments[1].size
    log.release()
    os.truncate(log.path_of(f"{bases[1]:020d}.log"), size - 1)
    caplog.clear()
    log = reopen(log, clean=False, recovery_point=0)
    assert len(caplog.records) == 1
    assert f"end_offset={bases[2] - 1}" in caplog.text
    assert [segment.base_offset for segment in log.segments] == bases[:2]
    assert log.log_end_offset == bases[2] - 1
    log.purge_deleted_files()
    logs = [name for name in os.listdir(log.directory) if name.endswith(".log")]
    assert len(logs) == 2


@pytest.mark.parametrize("slot", [0, 1, 2])
@pytest.mark.parametrize("position", [8, 9, 10, 11, 17, 22, 60, -1])
def test_a_damaged_middle_is_refused(tmp_path: Path, slot: int, position: int) -> None:
    """A batch that was changed while valid ones follow, in its segment or the next, is not cut away and not
    served: the log cannot be opened, and its files stay as they are."""
    log = segments_of(tmp_path)
    base = log.segments[slot].base_offset
    log.release()
    damaged = change_byte(log, base, position)
    with pytest.raises(DamagedLog, match=f"{base:020d}.log is damaged at byte"):
        reopen(log, clean=False, recovery_point=0)
    assert Path(log.path_of(f"{base:020d}.log")).read_bytes() == damaged
    assert not [name for name in os.listdir(log.directory) if name.endswith(".deleted")]


def test_pages_that_were_never_written_end_the_log(tmp_path: Path) -> None:
    """When the machine goes down, a page may be lost and a later one kept: what was not flushed ends there."""
    log = new_log(tmp_path)
    for _ in range(6):
        append(log, batch(b"x" * 3000))
    log.release()
    path = Path(log.path_of(f"{0:020d}.log"))
    data = bytearray(path.read_bytes())
    data[8192:12288] = bytes(4096)
    path.write_bytes(data)
    log = reopen(log, clean=False, recovery_point=0)
    assert [offset for offset, _ in values_from(log, 0)] == [0, 1]


def test_damage_below_the_recovery_point(tmp_path: Path) -> None:
    """What was on the disk cannot have been lost by a crash: neither a changed batch nor a short file below
    the recovery point is taken for the end of the log."""
    log = segments_of(tmp_path)
    log.flush()
    base = log.segments[-1].base_offset
    size = log.segments[-1].size
    log.release()
    change_byte(log, base, -1)
    with pytest.raises(DamagedLog, match="up to offset 20"):
        reopen(log, clean=False)
    change_byte(log, base, -1)
    os.truncate(log.path_of(f"{base:020d}.log"), size - 1)
    with pytest.raises(DamagedLog):
        reopen(log, clean=False)
    os.unlink(log.path_of(f"{base:020d}.log"))
    with pytest.raises(DamagedLog, match="ends at offset"):
        reopen(log, clean=False)


def test_a_flushed_segment_cut_short_is_noticed(tmp_path: Path) -> None:
    """Segments below the recovery point are not read, but where they end is looked at."""
    for clean in (False, True):
        log = segments_of(tmp_path / str(clean))
        log.flush()
        size = log.segments[1].size
        path = log.segments[1].file.path
        log.close()
        os.truncate(path, size - 1)
        with pytest.raises(DamagedLog, match="is damaged at byte"):
            reopen(log, clean=clean)


def test_flushed_segments_are_not_read_again(tmp_path: Path) -> None:
    """Below the recovery point no batch is checked: only its end and what follows the point are read."""
    log = segments_of(tmp_path, index_interval_bytes=0)
    log.flush()
    log.release()
    change_byte(log, 0, 100)
    log = reopen(log, clean=False)
    assert log.log_end_offset == 20
    assert log.recovery_point == 20


def test_a_damaged_index_entry_is_not_believed(tmp_path: Path) -> None:
    """An entry of an old segment that leads into the middle of a batch is noticed when it is used."""
    log = segments_of(tmp_path, count=40, index_interval_bytes=0)
    expected = values_from(log, 0)
    log.flush()
    log.close()
    path = Path(log.path_of(f"{0:020d}.index"))
    entries = bytearray(path.read_bytes())
    entries[7] += 3
    path.write_bytes(entries)
    log = reopen(log, clean=True)
    assert [each for offset in range(40) for each in values_from(log, offset)[:1]] == expected


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
