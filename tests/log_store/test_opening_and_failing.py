"""A log directory: how its logs are opened, what it forgets of deleted ones, and how it fails."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.deletion import SEGMENTS_AT_ONCE
from ottla.log_store.directory import LogDirectory
from ottla.log_store.log import Log
from ottla.wire.errors import KafkaError
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch, new_log, values_from
from tests.log_store.test_faults import FaultyDisk


def config_for(topic: str) -> TopicConfig:
    return TopicConfig()


def with_partitions(path: Path, count: int) -> None:
    directory = LogDirectory(path)
    directory.open_logs(config_for, now_ms=NOW_MS)
    for partition in range(count):
        append(directory.create_log("t", partition, TOPIC_ID, TopicConfig(), now_ms=NOW_MS), batch(b"a"))
    directory.close()


def test_logs_are_opened_in_parallel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many at a time as num.recovery.threads.per.data.dir says."""
    with_partitions(tmp_path, 6)
    together = threading.Barrier(3)
    really_open = Log.open

    def open_together(*arguments: Any, **options: Any) -> Log:
        together.wait(30)
        return really_open(*arguments, **options)

    monkeypatch.setattr(Log, "open", open_together)
    directory = LogDirectory(tmp_path)
    assert len(directory.open_logs(config_for, now_ms=NOW_MS, threads=3)) == 6
    directory.release()


def test_a_slow_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line now and then says how far it is."""
    with_partitions(tmp_path, 2)
    told = threading.Event()
    really_open = Log.open
    monkeypatch.setattr("ottla.log_store.directory._PROGRESS_SECONDS", 0.001)

    def tell(line: str, *arguments: Any) -> None:
        if "opened=1 of=2" in line % arguments:
            told.set()

    monkeypatch.setattr("ottla.log_store.directory.logger.info", tell)

    def open_late(path: str, *arguments: Any, **options: Any) -> Log:
        if path.endswith("1"):
            assert told.wait(30)
        return really_open(path, *arguments, **options)

    monkeypatch.setattr(Log, "open", open_late)
    directory = LogDirectory(tmp_path)
    assert len(directory.open_logs(config_for, now_ms=NOW_MS)) == 2
    directory.release()


def test_a_new_topic_has_nothing_of_an_old_one(tmp_path: Path) -> None:
    """The checkpoints forget a deleted partition, so that a topic of its name does not begin at its offsets."""
    directory = LogDirectory(tmp_path)
    directory.open_logs(config_for, now_ms=NOW_MS)
    log = directory.create_log("t", 0, TOPIC_ID, TopicConfig(), now_ms=NOW_MS)
    for _ in range(5):
        append(log, batch(b"old"))
    log.flush()
    log.delete_records_before(4)
    directory.write_checkpoints()
    directory.delete_log(log)
    directory.release()  # killed before the checkpoints were written again
    directory = LogDirectory(tmp_path)
    directory.open_logs(config_for, now_ms=NOW_MS)
    append(directory.create_log("t", 0, TOPIC_ID, TopicConfig(), now_ms=NOW_MS), batch(b"new"))
    directory.release()
    directory = LogDirectory(tmp_path)
    (log,) = directory.open_logs(config_for, now_ms=NOW_MS)
    assert values_from(log, 0) == [(0, b"new")]
    directory.release()


def test_a_disk_error_fails_the_directory(tmp_path: Path) -> None:
    """All its logs refuse, whoever looks after it hears of it once, and its stop is not called clean."""
    disk = FaultyDisk()
    directory = LogDirectory(tmp_path, fs=disk)
    heard: list[LogDirectory] = []
    directory.on_failure = heard.append
    directory.open_logs(config_for, now_ms=NOW_MS)
    first, second = (
        directory.create_log("t", partition, TOPIC_ID, TopicConfig(), now_ms=NOW_MS) for partition in (0, 1)
    )
    append(first, batch(b"a"))
    disk.room = 0
    for log in (first, second):
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            append(log, batch(b"b"))
    disk.room = 1 << 40
    assert heard == [directory]
    directory.write_checkpoints()
    directory.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert not (tmp_path / "recovery-point-offset-checkpoint").exists()


def test_what_is_left_before_the_log_start_is_no_damage(tmp_path: Path) -> None:
    """Segments that were still to be deleted may never have been flushed: a crash may have cut them off, and nobody is
    to read them."""
    log = new_log(tmp_path, internal_segment_bytes=400)
    for number in range(120):
        append(log, batch(b"%d" % number))
    log.advance_high_watermark(log.log_end_offset)
    log.delete_records_before(120)
    assert len(log.segments) > SEGMENTS_AT_ONCE
    append(log, batch(b"last"))
    log.flush()
    torn = Path(log.segments[2].file.path)
    log.release()
    os.truncate(torn, torn.stat().st_size - 20)
    log = Log.open(
        log.directory,
        log.config,
        now_ms=NOW_MS,
        clean=False,
        log_start_offset=120,
        recovery_point=121,
        high_watermark=121,
    )
    assert values_from(log, 120) == [(120, b"last")]
    assert log.log_start_offset == 120
    assert len(log.segments) == 1 or log.segments[1].base_offset > 120
    assert not torn.exists()
    log.close()


def test_a_large_deleted_file_that_is_open_until_the_interpreter_ends(tmp_path: Path) -> None:
    """It is closed without a thread of its own, which could not begin any more and would be waited for forever."""
    path = tmp_path / "00000000000000000000.log"
    program = (
        "import os, sys\n"
        "from ottla.log_store.files import OS_FILE_SYSTEM, LogFile\n"
        "file = LogFile.create(OS_FILE_SYSTEM, sys.argv[1])\n"
        "file.append(bytes(5_000_000))\n"
        "os.unlink(sys.argv[1])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], timeout=60, check=False)
    assert ended.returncode == 0
