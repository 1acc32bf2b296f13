"""A log directory: lock, marker, checkpoints, what is opened and what is left alone."""

import gc
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.directory import DirectoryInUse, LogDirectory
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch, values_from

CONFIG = TopicConfig(internal_segment_bytes=400)


def opened(path: Path) -> LogDirectory:
    directory = LogDirectory(path)
    directory.open_logs(lambda topic: CONFIG, now_ms=NOW_MS)
    return directory


def filled(path: Path) -> LogDirectory:
    """Two partitions, one of which begins inside a segment."""
    directory = opened(path)
    for partition in range(2):
        log = directory.create_log("orders", partition, TOPIC_ID, CONFIG, now_ms=NOW_MS)
        for number in range(10):
            append(log, batch(b"%d" % number))
    directory.logs["orders", 1].delete_records_before(1)
    return directory


def test_clean_stop_and_start(tmp_path: Path) -> None:
    """After a clean stop there are marker and checkpoints as Kafka writes them, and all is as before."""
    directory = filled(tmp_path)
    directory.close(broker_epoch=42)
    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": 42}
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n2\norders 0 10\norders 1 10\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n2\norders 0 10\norders 1 10\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\norders 1 1\n"
    directory = LogDirectory(tmp_path)
    assert (directory.was_clean, directory.last_broker_epoch) == (True, 42)
    logs = directory.open_logs(lambda topic: CONFIG, now_ms=NOW_MS)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert [(log.name, log.log_start_offset, log.high_watermark, log.topic_id) for log in logs] == [
        ("orders-0", 0, 10, TOPIC_ID),
        ("orders-1", 1, 10, TOPIC_ID),
    ]
    assert len(values_from(directory.logs["orders", 1], 1)) == 9
    directory.close()


def test_logs_are_made_while_checkpoints_are_written(tmp_path: Path) -> None:
    """By another thread, which goes on whenever this one looks for garbage."""
    directory = filled(tmp_path)
    log = directory.logs["orders", 0]
    for number in range(2, 3000):
        directory.logs["orders", number] = log
    numbers = iter(range(3000, 10**6))

    def make_log(phase: str, info: dict[str, int]) -> None:
        directory.logs["more", next(numbers)] = log

    thresholds = gc.get_threshold()
    gc.callbacks.append(make_log)
    gc.set_threshold(100)
    try:
        directory.write_checkpoints()
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(make_log)
    assert next(numbers) > 3000
    written = (tmp_path / "replication-offset-checkpoint").read_text().splitlines()
    assert "orders 2999 10" in written


def test_a_directory_that_vanished_is_let_go(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be written at the stop is logged, and neither the stop nor the lock hangs on it."""
    directory = filled(tmp_path / "data")
    shutil.rmtree(tmp_path / "data")
    directory.close()
    assert "log directory is offline" in caplog.text
    opened(tmp_path / "data").close()


def test_crash(tmp_path: Path) -> None:
    """Without a marker the logs are recovered from their recovery points."""
    directory = filled(tmp_path)
    directory.logs["orders", 0].flush()
    directory.write_checkpoints()
    directory.release()
    directory = LogDirectory(tmp_path)
    assert not directory.was_clean
    directory.open_logs(lambda topic: CONFIG, now_ms=NOW_MS)
    for (_, partition), log in directory.logs.items():
        assert len(values_from(log, partition)) == 10 - partition
    assert directory.logs["orders", 0].recovery_point == 10
    assert directory.logs["orders", 1].recovery_point == 1
    directory.close()


def test_lock(tmp_path: Path) -> None:
    """A directory in use is refused, in this process and in another, and free after the stop."""
    directory = LogDirectory(tmp_path)
    with pytest.raises(DirectoryInUse, match=str(tmp_path)):
        LogDirectory(tmp_path)
    attempt = "import fcntl,sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    command = [sys.executable, "-W", "ignore", "-c", attempt, str(tmp_path / ".lock")]
    other = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "BlockingIOError" in other.stderr
    directory.close()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    LogDirectory(tmp_path).close()


def test_deleted_partitions(tmp_path: Path) -> None:
    """A deleted partition is out of the way at once; its files go later, also if the broker stops before."""
    directory = filled(tmp_path)
    log = directory.logs["orders", 0]
    records = log.read(0, 100, upto=10, at_least_one=True).records
    directory.delete_log(log)
    assert ("orders", 0) not in directory.logs
    again = directory.create_log("orders", 0, bytes(15) + b"!", CONFIG, now_ms=NOW_MS)
    assert again.log_end_offset == 0
    [deleted] = [name for name in os.listdir(tmp_path) if name.endswith("-delete")]
    assert deleted.startswith("orders-0.")
    directory.close()
    directory = opened(tmp_path)
    assert sorted(directory.logs) == [("orders", 0), ("orders", 1)]
    assert directory.purge_deleted() == 1
    assert not [name for name in os.listdir(tmp_path) if name.endswith("-delete")]
    assert records is not None
    assert len(records.read()) == len(records)
    directory.close()


def test_foreign_directories_are_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is no partition stays; the metadata log belongs to another room."""
    for name in ("lost+found", "notes", "__cluster_metadata-0", "orders-0.abc-future"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    with caplog.at_level(logging.WARNING, "ottla.log_store"):
        directory = opened(tmp_path)
    assert directory.logs == {}
    assert sum("left alone" in record.message for record in caplog.records) == 3
    directory.close()
    assert (tmp_path / "notes" / "file").exists()


def test_one_damaged_partition(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A partition that cannot be opened does not keep the others away, and the next start looks again."""
    filled(tmp_path).close()
    segment = tmp_path / "orders-1" / f"{0:020d}.log"
    segment.unlink()
    segment.mkdir()
    checkpoints = {path: path.read_text() for path in tmp_path.glob("*-checkpoint")}
    directory = opened(tmp_path)
    assert list(directory.logs) == [("orders", 0)]
    assert list(directory.failed) == ["orders-1"]
    assert "orders-1" in caplog.text
    directory.close()
    for path, text in checkpoints.items():
        assert sorted(path.read_text().splitlines()) == sorted(text.splitlines())
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_stray_partitions(tmp_path: Path) -> None:
    """A partition of no known topic is set aside and kept."""
    directory = filled(tmp_path)
    directory.set_stray(directory.logs["orders", 0])
    directory.close()
    [stray] = tmp_path.glob("*-stray")
    assert stray.name.startswith("orders-0.")
    assert (stray / f"{0:020d}.log").stat().st_size > 0
    directory = opened(tmp_path)
    assert list(directory.logs) == [("orders", 1)]
    directory.close()


def test_cleaner_checkpoint(tmp_path: Path) -> None:
    """How far compaction came is kept in a file of its own, as long as the partition is there."""
    directory = filled(tmp_path)
    directory.logs["orders", 0].cleaner_checkpoint = 5
    directory.logs["orders", 1].cleaner_checkpoint = 7
    directory.write_cleaner_offsets()
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n2\norders 0 5\norders 1 7\n"
    directory.close()
    directory = opened(tmp_path)
    assert directory.logs["orders", 0].cleaner_checkpoint == 5
    directory.delete_log(directory.logs["orders", 1])
    directory.write_cleaner_offsets()
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\norders 0 5\n"
    directory.close()


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    """Closing gives back every file."""
    before = len(os.listdir("/proc/self/fd"))
    directory = filled(tmp_path)
    for log in directory.logs.values():
        values_from(log, log.log_start_offset)
    directory.close()
    assert len(os.listdir("/proc/self/fd")) == before
