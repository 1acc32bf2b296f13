"""The machine loses its power at each change of the metadata log: every flushed change is there after."""

import contextlib
import random
import shutil
from pathlib import Path

from ottla.metadata.store.log import DIRECTORY_NAME, MetadataLog
from ottla.wire.records import Record, build_batch
from tests.log_store.lossy_disk import Died, LossyDisk

NOW_MS = 1_700_000_000_000
SEGMENT_BYTES = 400
CHANGES = 12


def live(path: Path, disk: LossyDisk, flushed: list[int]) -> None:
    """Append one change after the other, over several segments and epochs, each flushed before the next."""
    log = MetadataLog(path / DIRECTORY_NAME, segment_bytes=SEGMENT_BYTES, now_ms=NOW_MS, fs=disk)
    log.begin_appending(0, NOW_MS)
    for number in range(CHANGES):
        epoch = 1 + number // 5
        record = Record(number, NOW_MS, None, b"change %d" % number)
        batch = build_batch([record], base_offset=number, partition_leader_epoch=epoch)
        log.append(batch, last_offset=number, epoch=epoch, timestamp_ms=NOW_MS)
        log.flush()
        flushed.append(number)
    log.close()


def test_every_flushed_change_survives(tmp_path: Path) -> None:
    """A new segment, a new epoch and the directory itself are synced before anybody is told of a change."""
    path = tmp_path / "live"
    path.mkdir()
    whole = LossyDisk(path)
    live(path, whole, [])
    assert whole.changes > 60
    for lives in range(whole.changes + 1):
        shutil.rmtree(path)
        path.mkdir()
        disk = LossyDisk(path, lives)
        flushed: list[int] = []
        with contextlib.suppress(Died):
            live(path, disk, flushed)
        for kept in (0.0, 0.5, 1.0):
            left = tmp_path / "left"
            shutil.rmtree(left, ignore_errors=True)
            disk.crash(left, random.Random(lives), kept)
            log = MetadataLog(left / DIRECTORY_NAME, segment_bytes=SEGMENT_BYTES, now_ms=NOW_MS)
            found = [view.base_offset for view in log.replay(0)]
            log.begin_appending(0, NOW_MS)
            log.release()
            assert found[: len(flushed)] == flushed
            assert len(found) <= len(flushed) + 1
