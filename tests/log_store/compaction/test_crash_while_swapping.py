"""The process dies at each change of the disk while a log is cleaned and swapped: consumers end up with the same."""

import contextlib
import shutil
from pathlib import Path

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.directory import LogDirectory
from ottla.log_store.log import Log
from ottla.wire.records.control import ControlType
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch
from tests.log_store.compaction.rounds import Seen, clean_fully, end_txn, seen, state_of
from tests.log_store.test_crash_at_each_write import Died, MortalDisk

CONFIG = TopicConfig(
    internal_segment_bytes=600,
    index_interval_bytes=100,
    segment_index_bytes=240,
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=100,
)


def fill(log: Log) -> None:
    """Segments with superseded records, tombstones, an aborted and a committed transaction."""
    for number in range(12):
        keys: list[bytes | None] = [b"k%d" % (number % 4), b"unique %d" % number]
        producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 2 * number} if number % 2 else {}
        if number % 2:
            producer["base_sequence"] = number - 1
        append(log, batch(b"v%d" % number, b"u", keys=keys, **producer))
    for kind, value in ((ControlType.ABORT, b"aborted"), (ControlType.COMMIT, b"committed")):
        txn = {"producer_id": 9, "producer_epoch": 0, "is_transactional": True}
        sequence = 0 if kind == ControlType.ABORT else 1
        append(log, batch(value, keys=[b"k0"], base_sequence=sequence, **txn))
        end_txn(log, kind, 9)
    append(log, batch(None, keys=[b"k1"]))  # type: ignore[arg-type]
    log.roll(NOW_MS)
    log.flush()


def life(path: Path, disk: MortalDisk) -> tuple[LogDirectory, list[Seen]]:
    """Write everything with a sound disk; from the cleaning on it is mortal."""
    lives, disk.lives = disk.lives, 1 << 30
    directory = LogDirectory(path, fs=disk)
    directory.open_logs(lambda topic: CONFIG, now_ms=NOW_MS)
    log = directory.create_log("orders", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    fill(log)
    directory.write_checkpoints()
    disk.changes, disk.lives = 0, lives
    return directory, seen(log)


@pytest.mark.parametrize(("torn", "reads_all"), [(0.0, False), (1.0, True)])
def test_dying_at_each_change(tmp_path: Path, torn: float, reads_all: bool) -> None:
    """Whatever the moment, the next start finds a log that ends up the same, without a file too many, and cleans it."""
    whole = MortalDisk(1 << 30, torn)
    directory, before = life(tmp_path / "whole", whole)
    clean_fully(directory.logs["orders", 0])
    directory.release()
    assert whole.changes > 30
    for lives in range(whole.changes):
        path = tmp_path / "life"
        shutil.rmtree(path, ignore_errors=True)
        directory, before = life(path, MortalDisk(lives, torn))
        end = directory.logs["orders", 0].log_end_offset
        with contextlib.suppress(Died):
            clean_fully(directory.logs["orders", 0])
        directory.release()
        if reads_all:  # the recovery point was not written yet
            (path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
        again = LogDirectory(path)
        again.open_logs(lambda topic: CONFIG, now_ms=NOW_MS)
        assert again.failed == {}
        log = again.logs["orders", 0]
        assert log.log_end_offset == end
        assert set(seen(log)) <= set(before)
        assert state_of(seen(log)) == state_of(before)
        bases = [segment.base_offset for segment in log.segments]
        assert bases == sorted(set(bases))
        offsets = [record.offset for record in seen(log, committed=False)]
        assert offsets == sorted(set(offsets))
        assert {entry.producer_id: entry.last_sequence for entry in log.producers.producers.values()} == {
            7: 11,
            9: 1,
        }
        left = [each.name for each in (path / "orders-0").iterdir()]
        assert not [name for name in left if name.endswith((".cleaned", ".swap", ".deleted"))]
        clean_fully(log)
        clean_fully(log, NOW_MS + 1000)
        assert state_of(seen(log)) == state_of(before)
        again.release()
