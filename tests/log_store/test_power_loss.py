"""The machine loses its power at each change of the disk: what the flush policy promised is there after."""

import contextlib
import random
import shutil
from pathlib import Path

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.directory import LogDirectory, flush_directory
from ottla.log_store.log import Log
from tests.log_store.batches import NOW_MS, TOPIC_ID, batch, producer_batch, values_from
from tests.log_store.lossy_disk import Died, LossyDisk

BASE = {"internal_segment_bytes": 20_000, "index_interval_bytes": 1000, "segment_index_bytes": 1200}
EACH = TopicConfig(**BASE, flush_messages=1)
NEVER = TopicConfig(**BASE)
OFFSETS_DELETED = 4


class Life:
    """A broker's life on a disk: what it acknowledged, what was flushed, and all it ever wrote."""

    def __init__(self, disk: LossyDisk, path: Path, config: TopicConfig, seed: int) -> None:
        self.disk = disk
        self.path = path
        self.config = config
        self.dice = random.Random(seed)
        self.written: list[tuple[int, bytes]] = []
        self.promised = 0  # offsets below are acknowledged, and the policy says they are on the disk
        self.topic_is_promised = False
        self.log_start = 0
        self.directory: LogDirectory | None = None

    def live(self) -> None:
        self.directory = directory = LogDirectory(self.path, fs=self.disk)
        directory.open_logs(lambda topic: self.config, now_ms=NOW_MS)
        log = directory.create_log("orders", 0, TOPIC_ID, self.config, now_ms=NOW_MS)
        flush_directory(directory)
        self.topic_is_promised = True
        sequence = 0
        for number in range(14):
            value = self.dice.randbytes(self.dice.choice([10, 900, 3000, 5000, 9000]))
            if number % 3 == 2:
                value = b"%d" % sequence
                records = producer_batch(sequence=sequence)
                sequence += 1
            else:
                records = batch(value)
            self.written.append((log.log_end_offset, value))
            result = log.append(records, leader_epoch=number // 5, now_ms=NOW_MS)
            log.advance_high_watermark(log.log_end_offset)
            if result.flush_due or number == 8:
                log.flush()
                self.promised = log.recovery_point
            if number in (4, 10):
                directory.write_checkpoints()
            if number == 7:
                self.log_start = OFFSETS_DELETED
                log.delete_records_before(OFFSETS_DELETED)
                directory.write_log_start_offsets()
                log.purge_deleted_files()
        directory.close()
        self.promised = len(self.written)


def check(life: Life, path: Path) -> None:
    """Open what the crash left: nothing promised is missing, and nothing is there that was not written."""
    again = LogDirectory(path)
    try:
        again.open_logs(lambda topic: life.config, now_ms=NOW_MS)
        assert again.failed == {}
        log = again.logs.get(("orders", 0))
        if log is None:
            assert not life.topic_is_promised
            return
        found = values_from(log, log.log_start_offset)
        assert found == [life.written[offset] for offset, _ in found]
        assert {offset for offset, _ in found} >= set(range(life.log_start, life.promised))
        assert log.log_end_offset >= life.promised
        go_on(log)
    finally:
        again.release()


def go_on(log: Log) -> None:
    """The log takes more, and keeps the order of epochs."""
    end = log.log_end_offset
    log.append(batch(b"and on"), leader_epoch=9, now_ms=NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
    assert values_from(log, end) == [(end, b"and on")]
    starts = [entry.start_offset for entry in log.leader_epochs.entries]
    assert starts == sorted(starts)


@pytest.mark.parametrize("config", [EACH, NEVER], ids=["flush.messages=1", "no policy"])
@pytest.mark.parametrize("seed", [3, 7])
def test_power_is_lost_at_each_change(tmp_path: Path, config: TopicConfig, seed: int) -> None:
    """With flush.messages=1 all that was acknowledged survives, and without a policy what was flushed; what
    else survives is what was written at that offset."""
    whole = LossyDisk(_empty(tmp_path / "whole"))
    Life(whole, tmp_path / "whole", config, seed).live()
    assert whole.changes > 80
    for lives in range(whole.changes + 1):
        disk = LossyDisk(_empty(tmp_path / "live"), lives)
        life = Life(disk, tmp_path / "live", config, seed)
        with contextlib.suppress(Died):
            life.live()
        if life.directory is not None:
            life.directory.release()
        for kept in (0.0, 0.6):
            shutil.rmtree(tmp_path / "left", ignore_errors=True)
            disk.crash(tmp_path / "left", random.Random(lives * 10 + seed), kept)
            check(life, tmp_path / "left")


def _empty(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path
