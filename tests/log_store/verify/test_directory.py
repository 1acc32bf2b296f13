"""A whole log directory: partitions, the checkpoints that speak of them, and the lock."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store.directory import LogDirectory
from ottla.log_store.verify.directory import DirectoryCheck, is_in_use, partition_names, segment_bytes
from ottla.log_store.verify.finding import Finding
from ottla.log_store.verify.partition import VerifyOptions
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch

RECOVERY = "recovery-point-offset-checkpoint"
WATERMARK = "replication-offset-checkpoint"
START = "log-start-offset-checkpoint"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two partitions, cleanly stopped."""
    logs = LogDirectory(tmp_path / "data")
    for partition in (0, 1):
        log = logs.create_log("orders", partition, TOPIC_ID, TopicConfig(), now_ms=NOW_MS)
        append(log, batch(b"a", b"b", b"c"))
    logs.close()
    return tmp_path / "data"


def findings(directory: Path, **options: bool) -> list[Finding]:
    return list(DirectoryCheck(str(directory), VerifyOptions(**options)).run())


def test_a_clean_directory(directory: Path) -> None:
    """Nothing is wrong, and every partition was looked at."""
    check = DirectoryCheck(str(directory), VerifyOptions())
    assert list(check.run()) == []
    assert {key: each.end_offset for key, each in check.partitions.items()} == {
        ("orders", 0): 3,
        ("orders", 1): 3,
    }
    assert partition_names(str(directory)) == ["orders-0", "orders-1"]
    assert (
        segment_bytes([str(directory / "orders-0")])
        == (directory / "orders-0" / f"{0:020d}.log").stat().st_size
    )


def text(name: str, *lines: str) -> Callable[[Path], object]:
    content = "\n".join(["0", str(len(lines)), *lines]) + "\n"
    return lambda directory: (directory / name).write_text(content)


DAMAGES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "recovery point beyond the end": (
        text(RECOVERY, "orders 0 4"),
        RECOVERY,
        "orders-0 has 4, but the log ends at 3",
    ),
    "negative recovery point": (text(RECOVERY, "orders 0 -1"), RECOVERY, "orders-0 has -1"),
    "high watermark beyond the end": (text(WATERMARK, "orders 1 9"), WATERMARK, "orders-1 has 9"),
    "log start beyond the end": (text(START, "orders 1 9"), START, "orders-1 has 9"),
    "cleaner beyond the end": (
        text("cleaner-offset-checkpoint", "orders 1 9"),
        "cleaner-offset-checkpoint",
        "has 9",
    ),
    "a partition that is not here": (
        text(RECOVERY, "orders 7 0"),
        RECOVERY,
        "orders-7 is named, but is not here",
    ),
    "a checkpoint of another version": (
        lambda directory: (directory / RECOVERY).write_text("3\n0\n"),
        RECOVERY,
        "has version '3'",
    ),
    "a checkpoint that counts wrong": (
        lambda directory: (directory / RECOVERY).write_text("0\n5\norders 0 1\n"),
        RECOVERY,
        "promises '5' entries and has 1",
    ),
    "a checkpoint without numbers": (text(RECOVERY, "orders zero one"), RECOVERY, "cannot be read"),
    "a deleted partition": (
        lambda directory: (directory / f"orders-3.{'0' * 32}-delete").mkdir(),
        "-delete",
        "a deleted partition that waits",
    ),
    "a stray partition": (
        lambda directory: (directory / f"orders-3.{'0' * 32}-stray").mkdir(),
        "-stray",
        "no known topic",
    ),
    "a temporary file": (
        lambda directory: (directory / f"{RECOVERY}.tmp").touch(),
        ".tmp",
        "was being written",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_exactly_what_was_damaged_is_found(directory: Path, name: str) -> None:
    """One finding, with the file and what is wrong with it."""
    damage, file, problem = DAMAGES[name]
    damage(directory)
    [finding] = findings(directory)
    assert finding.path.endswith(file)
    assert problem in finding.problem


def test_a_high_watermark_below_the_start(directory: Path) -> None:
    """What was deleted had been committed."""
    text(START, "orders 0 2")(directory)
    text(WATERMARK, "orders 0 1")(directory)
    [finding] = findings(directory)
    assert "below the log start 2" in finding.problem


def test_what_a_running_broker_has_begun(directory: Path) -> None:
    """Checkpoints that lag behind and files that wait for removal are no findings beside a broker."""
    text(RECOVERY, "orders 7 0")(directory)
    (directory / f"orders-3.{'0' * 32}-delete").mkdir()
    assert findings(directory, in_use=True) == []


def test_the_lock_is_asked_about_and_not_taken(directory: Path) -> None:
    """In this process and in another one; a directory without a lock file is in nobody's use."""
    assert not is_in_use(str(directory))
    logs = LogDirectory(directory)
    assert is_in_use(str(directory))
    logs.release()
    assert not is_in_use(str(directory))
    program = (
        "import fcntl, sys; file = open(sys.argv[1], 'r+'); fcntl.lockf(file, fcntl.LOCK_EX);"
        " print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(directory / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        assert is_in_use(str(directory))
        other.communicate("")
    with (directory / ".lock").open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (directory / ".lock").unlink()
    assert not is_in_use(str(directory))
