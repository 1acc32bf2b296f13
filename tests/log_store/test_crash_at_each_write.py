"""The process dies at each change of the disk in turn; after recovery every acknowledged record is there once."""

import contextlib
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.directory import LogDirectory
from ottla.log_store.files import Buffer, OsFileSystem
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch, new_log, producer_batch, values_from

CONFIG = TopicConfig(internal_segment_bytes=500, index_interval_bytes=100, segment_index_bytes=240)


class Died(BaseException):
    """The process is gone; nothing of it may catch this."""


class MortalDisk(OsFileSystem):
    """Dies at its nth change. A write it dies in has done `torn` of its bytes."""

    def __init__(self, lives: int, torn: float = 0.5) -> None:
        self.lives = lives
        self.changes = 0
        self.torn = torn
        for name in ("ftruncate", "fsync", "rename", "unlink", "mkdir"):
            setattr(self, name, self._mortal(getattr(os, "replace" if name == "rename" else name)))
        self.open: Callable[..., int] = self._open
        self.pwrite: Any = self._pwrite

    def _live(self) -> None:
        self.changes += 1
        if self.changes > self.lives:
            raise Died

    def _mortal(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self._live()
            return function(*arguments)

        return call

    def _open(self, path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT and not os.path.exists(path):
            self._live()
        return os.open(path, flags, mode)

    def _pwrite(self, fd: int, data: Buffer, offset: int) -> int:
        try:
            self._live()
        except Died:
            os.pwrite(fd, memoryview(data)[: int(len(data) * self.torn)], offset)
            raise
        return os.pwrite(fd, data, offset)


class Run:
    """A life of a broker: what it acknowledged, and what it was about to."""

    def __init__(self, path: Path, disk: MortalDisk) -> None:
        self.acknowledged: list[tuple[int, bytes]] = []
        self.pending: list[bytes] = []
        self.log_start = 0
        self.directory = LogDirectory(path, fs=disk)

    def live(self) -> None:
        self.directory.open_logs(lambda topic: CONFIG, now_ms=NOW_MS)
        log = self.directory.create_log("orders", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
        sequence = 0
        for number in range(16):
            is_idempotent = number % 2 == 1
            if is_idempotent:
                self.pending = [b"%d" % sequence, b"%d" % (sequence + 1)]
                records = producer_batch(2, sequence=sequence)
                sequence += 2
            else:
                self.pending = [b"plain %d" % number]
                records = batch(*self.pending)
            base = append(log, records, epoch=number // 6)
            self.acknowledged += [(base + index, value) for index, value in enumerate(self.pending)]
            self.pending = []
            if number == 7:
                log.flush()
                self.directory.write_checkpoints()
            if number == 11:
                log.delete_records_before(9)
                self.log_start = 9
                self.directory.write_log_start_offsets()
                log.purge_deleted_files()
        self.directory.close()


@pytest.mark.parametrize("torn", [0.0, 0.5, 1.0])
def test_dying_at_each_change(tmp_path: Path, torn: float) -> None:
    """Whatever the moment, what was acknowledged is found, and at most what was being written besides."""
    whole = MortalDisk(1 << 30, torn)
    Run(tmp_path / "whole", whole).live()
    assert whole.changes > 80
    for lives in range(whole.changes):
        path = tmp_path / "life"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        run = Run(path, MortalDisk(lives, torn))
        with contextlib.suppress(Died):
            run.live()
        run.directory.release()
        again = LogDirectory(path)
        again.open_logs(lambda topic: CONFIG, now_ms=NOW_MS)
        assert again.failed == {}
        log = again.logs.get(("orders", 0))
        if log is None:
            assert run.acknowledged == []
        else:
            found = values_from(log, log.log_start_offset)
            assert log.log_start_offset <= 9
            expected = [each for each in run.acknowledged if each[0] >= log.log_start_offset]
            assert found[: len(expected)] == expected
            assert [value for _, value in found[len(expected) :]] in ([], run.pending)
            log.advance_high_watermark(log.log_end_offset)
            append(log, batch(b"and on"))
            assert values_from(log, log.log_start_offset)[-1][1] == b"and on"
        again.release()


def test_flushing_in_a_thread(tmp_path: Path) -> None:
    """A worker flushes again and again while the log is appended to and rolled; nothing is lost."""
    log = new_log(tmp_path, internal_segment_bytes=2000, index_interval_bytes=100)
    stop = threading.Event()
    failures: list[BaseException] = []

    def flush() -> None:
        try:
            while not stop.is_set():
                log.flush()
                assert log.recovery_point <= log.log_end_offset
        except BaseException as error:
            failures.append(error)
            raise

    worker = threading.Thread(target=flush)
    worker.start()
    for number in range(300):
        append(log, batch(b"%d" % number * 20), epoch=number // 100)
    stop.set()
    worker.join()
    assert failures == []
    log.flush()
    assert log.recovery_point == log.log_end_offset == 300
    assert len(log.segments) > 5
    assert [offset for offset, _ in values_from(log, 0)] == list(range(300))
