"""Every file of a partition is damaged in every way, and exactly that is found."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import crc32c
import pytest

from ottla.log_store.inspect.batch_file import BatchFile
from ottla.log_store.producer_snapshot import decode_snapshot, encode_snapshot
from ottla.log_store.verify.finding import Finding
from ottla.log_store.verify.partition import PartitionCheck, VerifyOptions
from ottla.wire.records.header import BatchView
from tests.log_store.batches import NOW_MS, batch, new_log
from tests.log_store.test_dump_log_segments import written

Damage = Callable[[Path], None]

FIRST = "00000000000000000000"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every codec, producers, transactions, epochs and several segments, stopped cleanly."""
    log = written(tmp_path_factory.mktemp("pristine"))
    log.flush()
    log.close()
    return Path(log.directory)


@pytest.fixture
def partition(pristine: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(pristine, tmp_path / pristine.name))


def findings(directory: Path, **options: bool) -> list[Finding]:
    return list(PartitionCheck(str(directory), VerifyOptions(**options)).run())


def last_of(directory: Path, suffix: str) -> Path:
    return max(directory.glob(f"*{suffix}"))


def position_of(path: Path, number: int) -> int:
    """Where a batch of a segment begins."""
    with BatchFile(str(path)) as file:
        return [position for position, _ in file.batches()][number]


def put(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def change_batch(path: Path, number: int, layout: str, at: int, value: int) -> None:
    """Write another number into a header, and the checksum that goes with it."""
    position = position_of(path, number)
    content = bytearray(path.read_bytes())
    struct.pack_into(layout, content, position + at, value)
    view = BatchView(memoryview(content), position)
    checksum = crc32c.crc32c(memoryview(content)[position + 21 : view.end])
    struct.pack_into(">I", content, position + 17, checksum)
    path.write_bytes(content)


def in_batch(number: int, layout: str, at: int, value: int) -> Damage:
    return lambda directory: change_batch(directory / f"{FIRST}.log", number, layout, at, value)


def flip_in_batch(directory: Path) -> None:
    path = directory / f"{FIRST}.log"
    position = position_of(path, 5) + 64
    put(path, position, bytes((path.read_bytes()[position] ^ 1,)))


def bytes_in_first_log(number: int, at: int, data: bytes) -> Damage:
    def damage(directory: Path) -> None:
        path = directory / f"{FIRST}.log"
        put(path, position_of(path, number) + at, data)

    return damage


def cut(suffix: str, count: int) -> Damage:
    def damage(directory: Path) -> None:
        path = last_of(directory, suffix)
        os.truncate(path, path.stat().st_size - count)

    return damage


def add(name: str, data: bytes) -> Damage:
    def damage(directory: Path) -> None:
        path = directory / name if name[0] != "." else last_of(directory, name)
        with path.open("ab") as file:
            file.write(data)

    return damage


def entry(name: str, layout: str, slot: int, *values: int) -> Damage:
    size = struct.calcsize(layout)
    return lambda directory: put(directory / name, slot * size, struct.pack(layout, *values))


def remove(name: str) -> Damage:
    return lambda directory: (directory / name).unlink()


def rename_last(suffix: str, name: str) -> Damage:
    return lambda directory: last_of(directory, suffix).rename(directory / name) and None


def change_snapshot(**values: int) -> Damage:
    """Another fact about a producer, and the checksum that goes with it."""

    def damage(directory: Path) -> None:
        path = last_of(directory, ".snapshot")
        entries = decode_snapshot(path.read_bytes())
        for name, value in values.items():
            setattr(entries[0], name, value)
        path.write_bytes(encode_snapshot(entries))

    return damage


def stranger_in_snapshot(directory: Path) -> None:
    change_snapshot(producer_id=999)(directory)


def epochs(*lines: str) -> Damage:
    text = "\n".join(["0", str(len(lines)), *lines]) + "\n"
    return lambda directory: (directory / "leader-epoch-checkpoint").write_text(text) and None


def put_txn(slot_values: tuple[int, ...]) -> Damage:
    return lambda directory: put(last_of(directory, ".txnindex"), 0, struct.pack(">hqqqq", *slot_values))


DAMAGES: dict[str, tuple[Damage, str, str]] = {
    # what is done, the file that is named, what is said of it
    "a flipped bit": (flip_in_batch, f"{FIRST}.log", "the CRC of the batch is not"),
    "an impossible length": (
        bytes_in_first_log(9, 8, b"\xff\xff\xff\xff"),
        f"{FIRST}.log",
        "no whole batch begins here: batch length -1 is below the smallest possible",
    ),
    "another magic": (
        bytes_in_first_log(9, 16, b"\x07"),
        f"{FIRST}.log",
        "no whole batch begins here: unknown magic 7",
    ),
    "an old magic": (
        bytes_in_first_log(9, 16, b"\x01"),
        f"{FIRST}.log",
        "only batches of magic 2 are accepted, not 1",
    ),
    "a torn tail": (cut(".log", 5), ".log", "no whole batch begins here: the batch needs"),
    "noise behind the log": (add(".log", b"noise" * 5), ".log", "no whole batch begins here"),
    "an offset that goes back": (
        bytes_in_first_log(9, 0, (3).to_bytes(8, "big")),
        f"{FIRST}.log",
        "the batch does not follow offset",
    ),
    "a wrong count": (
        in_batch(4, ">i", 57, 2),
        f"{FIRST}.log",
        "the records cannot be read: a batch holds more",
    ),
    "a greatest timestamp that lies": (
        in_batch(2, ">q", 35, NOW_MS + 12),
        f"{FIRST}.log",
        f"the greatest timestamp of the records is {NOW_MS + 20}, not {NOW_MS + 12}",
    ),
    "an offset index that is missing": (remove(f"{FIRST}.index"), f"{FIRST}.index", "the index is missing"),
    "a time index that is missing": (
        remove(f"{FIRST}.timeindex"),
        f"{FIRST}.timeindex",
        "the index is missing",
    ),
    "a cut offset index": (
        lambda directory: os.truncate(directory / f"{FIRST}.index", 61),
        f"{FIRST}.index",
        "5 bytes at the end are no whole entry",
    ),
    "offset index entries out of order": (
        entry(f"{FIRST}.index", ">ii", 2, 1, 9),
        f"{FIRST}.index",
        "entry 2 (1, 9) does not follow",
    ),
    "an index entry between two batches": (
        entry(f"{FIRST}.index", ">ii", 0, 14, 379),
        f"{FIRST}.index",
        "the entry points at byte 379 of the log, where no batch begins",
    ),
    "an index entry with another offset": (
        entry(f"{FIRST}.index", ">ii", 0, 13, 378),
        f"{FIRST}.index",
        "the entry for byte 378 says 13, but the batch there ends at 14",
    ),
    "an index entry beyond the log": (
        add(f"{FIRST}.index", struct.pack(">ii", 100_000, 100_000)),
        f"{FIRST}.index",
        "the entry points at byte 100000",
    ),
    "an index of a rolled segment that is not trimmed": (
        add(f"{FIRST}.index", bytes(80)),
        f"{FIRST}.index",
        "10 empty entries at the end, though the segment is rolled",
    ),
    "a time entry with another time": (
        entry(f"{FIRST}.timeindex", ">qi", 0, NOW_MS + 1, 14),
        f"{FIRST}.timeindex",
        f"the entry says {NOW_MS + 1}, but the batch has",
    ),
    "time entries out of order": (
        entry(f"{FIRST}.timeindex", ">qi", 3, 1, 1),
        f"{FIRST}.timeindex",
        "entry 3 (1, 1) does not follow",
    ),
    "a time entry beyond the segment": (
        add(f"{FIRST}.timeindex", struct.pack(">qi", NOW_MS * 2, 100_000)),
        f"{FIRST}.timeindex",
        "the entry names an offset beyond the segment",
    ),
    "a time index that ends early": (
        lambda directory: os.truncate(directory / f"{FIRST}.timeindex", 24),
        f"{FIRST}.timeindex",
        "the last entry says",
    ),
    "a transaction index that is missing": (
        lambda directory: last_of(directory, ".txnindex").unlink(),
        ".txnindex",
        "the file is missing, but 1 transactions were aborted",
    ),
    "a transaction index of an unknown version": (
        put_txn((5, 4001, 600, 601, 602)),
        ".txnindex",
        "an entry has version 5",
    ),
    "a cut transaction index": (
        add(".txnindex", b"abc"),
        ".txnindex",
        "3 bytes at the end are no whole entry",
    ),
    "an abort that never was": (
        add(".txnindex", struct.pack(">hqqqq", 0, 4001, 602, 603, 604)),
        ".txnindex",
        "no such transaction was aborted",
    ),
    "a snapshot with a flipped bit": (
        lambda directory: put(last_of(directory, ".snapshot"), 20, b"\x55"),
        ".snapshot",
        "the snapshot cannot be read: the checksum does not match",
    ),
    "a cut snapshot": (
        lambda directory: os.truncate(last_of(directory, ".snapshot"), 3),
        ".snapshot",
        "the snapshot cannot be read: the file is cut off",
    ),
    "a snapshot with another epoch": (
        change_snapshot(producer_epoch=1),
        ".snapshot",
        "producer 4000 has epoch 1 instead of 2",
    ),
    "a snapshot with an open transaction": (
        change_snapshot(current_txn_first_offset=3),
        ".snapshot",
        "producer 4000 has current_txn_first_offset 3 instead of None",
    ),
    "a snapshot of a stranger": (stranger_in_snapshot, ".snapshot", "producer 999 never wrote to this log"),
    "a snapshot beyond the end": (
        rename_last(".snapshot", "00000000000000009999.snapshot"),
        ".snapshot",
        "the snapshot is of an offset beyond the end of the log, 604",
    ),
    "a snapshot inside of a batch": (
        rename_last(".snapshot", "00000000000000000593.snapshot"),
        ".snapshot",
        "no batch begins at the offset of the snapshot",
    ),
    "epochs that are no text": (
        lambda directory: (directory / "leader-epoch-checkpoint").write_bytes(b"\xff\xfe\n") and None,
        "leader-epoch-checkpoint",
        "the file cannot be read",
    ),
    "a count of epochs that lies": (
        lambda directory: (directory / "leader-epoch-checkpoint").write_text("0\n7\n0 0\n") and None,
        "leader-epoch-checkpoint",
        "promises '7' entries and has 1",
    ),
    "epochs that go back": (
        epochs("0 0", "1 270", "1 540"),
        "leader-epoch-checkpoint",
        "epoch 1 at 540 does not follow epoch 1 at 270",
    ),
    "an epoch that is missing": (
        epochs("0 0", "2 540", "3 600"),
        "leader-epoch-checkpoint",
        "the batch has leader epoch 1, the file says 0",
    ),
    "an epoch beyond the end": (
        epochs("0 0", "1 270", "2 540", "3 600", "4 605"),
        "leader-epoch-checkpoint",
        "epoch 4 begins beyond the end of the log, 604",
    ),
    "no topic id": (remove("partition.metadata"), "partition.metadata", "the file is missing"),
    "half a topic id": (
        lambda directory: (directory / "partition.metadata").write_text("version: 0\ntopic_id: x") and None,
        "partition.metadata",
        "the file cannot be read",
    ),
    "a file of a deletion": (
        add("00000000000000000000.log.deleted", b""),
        ".deleted",
        "left over: a file that waits",
    ),
    "a file of a compaction": (
        add("00000000000000000000.log.cleaned", b""),
        ".cleaned",
        "left over: what an interrupted",
    ),
    "a file of a swap": (add("00000000000000000000.log.swap", b""), ".swap", "left over: a compacted file"),
    "a temporary file": (add("leader-epoch-checkpoint.tmp", b""), ".tmp", "left over: a small file"),
    "an index without a log": (
        add("00000000000000000099.index", b""),
        ".index",
        "an index without a segment",
    ),
    "a stranger's file": (add("notes.txt", b""), "notes.txt", "not a file of a partition"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_exactly_what_was_damaged_is_found(partition: Path, name: str) -> None:
    """One finding, with the file and what is wrong with it."""
    damage, file, problem = DAMAGES[name]
    damage(partition)
    [finding] = findings(partition)
    assert finding.path.startswith(str(partition))
    assert finding.path.endswith(file)
    assert problem in finding.problem
    assert str(finding).startswith(f"{finding.path}: ")


def test_an_undamaged_partition(partition: Path) -> None:
    """Nothing is found, nothing is written, and the end of the log is known."""
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in partition.iterdir()}
    check = PartitionCheck(str(partition), VerifyOptions())
    assert list(check.run()) == []
    assert (check.start_offset, check.end_offset, check.is_complete) == (0, 604, True)
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in partition.iterdir()} == before


def test_a_partition_without_its_first_segments(partition: Path) -> None:
    """Retention takes segments with their snapshots; the producers are then known from the first that is left."""
    first, second = sorted(partition.glob("*.log"))[:2]
    for path in partition.glob(f"{first.stem}.*"):
        path.unlink()
    (partition / "leader-epoch-checkpoint").write_text(f"0\n4\n0 {int(second.stem)}\n1 270\n2 540\n3 600\n")
    assert findings(partition) == []


def test_quick_does_not_read_records(partition: Path) -> None:
    """A lie about the records is not seen, a flipped bit is."""
    in_batch(2, ">q", 35, NOW_MS + 12)(partition)
    assert findings(partition, looks_inside=False) == []
    flip_in_batch(partition)
    assert len(findings(partition, looks_inside=False)) == 1


def test_two_findings_in_one_file(partition: Path) -> None:
    """The walk goes on after a damaged batch."""
    path = partition / f"{FIRST}.log"
    for number in (2, 6):
        position = position_of(path, number) + 70
        put(path, position, bytes((path.read_bytes()[position] ^ 0x10,)))
    assert [finding.problem[:20] for finding in findings(partition)] == ["the CRC of the batch"] * 2


def test_segments_that_overlap(partition: Path) -> None:
    """A segment whose name says that it begins before the one before it ends."""
    last = last_of(partition, ".log")
    for path in partition.glob(f"{last.stem}.*"):
        path.rename(partition / path.name.replace(last.stem, f"{int(last.stem) - 1:020d}"))
    found = findings(partition)
    assert any("the segment reaches into the next one" in finding.problem for finding in found)


def test_a_log_in_use(tmp_path: Path) -> None:
    """Room in the indexes, a half written batch and files that wait for removal are what a running broker has."""
    log = new_log(tmp_path, index_interval_bytes=50)
    for number in range(20):
        log.append(batch(b"v" * number), leader_epoch=0, now_ms=NOW_MS)
    directory = Path(log.directory)
    assert findings(directory, in_use=True) == findings(directory) == []
    with last_of(directory, ".log").open("ab") as file:
        file.write(batch(b"half")[:30])
    (directory / f"{FIRST}.snapshot.deleted").touch()
    assert findings(directory, in_use=True) == []
    assert len(findings(directory)) == 2
    log.release()


def test_preallocated_segments(tmp_path: Path) -> None:
    """Zeros behind the last batch are room, not damage."""
    log = new_log(tmp_path, preallocate=True, internal_segment_bytes=10_000)
    log.append(batch(b"value"), leader_epoch=0, now_ms=NOW_MS)
    assert last_of(Path(log.directory), ".log").stat().st_size == 10_000
    assert findings(Path(log.directory)) == []
    log.release()


def test_no_segment(tmp_path: Path) -> None:
    """An empty directory is no log."""
    assert [finding.problem for finding in findings(tmp_path)][-1] == "the partition has no segment"
