"""The sparse indexes: lookups against a plain list, sizes on disk, truncation, reopening."""

import errno
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log_store.files import OS_FILE_SYSTEM, OsFileSystem
from ottla.log_store.index_file import CorruptIndex
from ottla.log_store.offset_index import OffsetIndex
from ottla.log_store.time_index import TimeEntry, TimeIndex
from ottla.log_store.txn_index import AbortedTxn, TxnIndex

BASE = 1000

ascending = st.lists(st.integers(0, 500), unique=True, max_size=60).map(sorted)


def offset_index(path: Path, max_bytes: int = 4096, length: int = 0) -> OffsetIndex:
    return OffsetIndex(OS_FILE_SYSTEM, str(path), BASE, max_bytes, length)


def time_index(path: Path, max_bytes: int = 4096, length: int = 0) -> TimeIndex:
    return TimeIndex(OS_FILE_SYSTEM, str(path), BASE, max_bytes, length)


@given(offsets=ascending, asked=st.integers(0, 520))
def test_offset_lookup(tmp_path_factory: pytest.TempPathFactory, offsets: list[int], asked: int) -> None:
    """A lookup finds the last entry at or below the offset, or the beginning of the segment."""
    index = offset_index(tmp_path_factory.mktemp("index") / "i.index")
    entries = [(BASE + offset, offset * 100) for offset in offsets]
    for entry in entries:
        index.append(*entry)
    expected = max((e for e in entries if e[0] <= BASE + asked), default=(BASE, 0))
    assert index.lookup(BASE + asked) == expected
    assert [index.entry(slot) for slot in range(index.entries)] == entries
    index.release()


@given(offsets=ascending, cut=st.integers(0, 520))
def test_offset_truncation(tmp_path_factory: pytest.TempPathFactory, offsets: list[int], cut: int) -> None:
    """Truncation drops the entries at and after an offset, and appends go on from there."""
    index = offset_index(tmp_path_factory.mktemp("index") / "i.index")
    for offset in offsets:
        index.append(BASE + offset, offset)
    index.truncate_to(BASE + cut)
    kept = [offset for offset in offsets if offset < cut]
    assert index.entries == len(kept)
    assert index.last_entry == ((BASE + kept[-1], kept[-1]) if kept else (BASE, 0))
    index.append(BASE + 600, 7)
    assert index.lookup(BASE + 700) == (BASE + 600, 7)
    index.release()


@given(offsets=ascending, asked=st.integers(-5, 520))
def test_upper_bound(tmp_path_factory: pytest.TempPathFactory, offsets: list[int], asked: int) -> None:
    """The upper bound is the first entry at or after a file position."""
    index = offset_index(tmp_path_factory.mktemp("index") / "i.index")
    for offset in offsets:
        index.append(BASE + offset, offset)
    expected = min((BASE + offset for offset in offsets if offset >= asked), default=None)
    assert index.upper_bound_offset(asked) == expected
    index.release()


def test_preallocated_then_trimmed(tmp_path: Path) -> None:
    """The file has its full length, without blocks, while written, and only its entries after."""
    path = tmp_path / "i.index"
    index = offset_index(path, max_bytes=10 * 1024 * 1024 + 3)
    index.preallocate()
    assert path.stat().st_size == 10 * 1024 * 1024
    assert path.stat().st_blocks * 512 < 1024 * 1024
    index.append(BASE + 5, 77)
    index.append(BASE + 9, 99)
    assert path.stat().st_size == 10 * 1024 * 1024
    index.close()
    assert path.read_bytes() == struct.pack(">iiii", 5, 77, 9, 99)
    again = offset_index(path, length=path.stat().st_size)
    assert again.lookup(BASE + 8) == (BASE + 5, 77)
    again.append(BASE + 11, 111)
    assert again.lookup(BASE + 11) == (BASE + 11, 111)
    assert again.lookup(BASE + 10) == (BASE + 9, 99)
    again.release()


def test_smaller_limit_cuts_nothing(tmp_path: Path) -> None:
    """If the limit has become smaller than what is there, the entries stay and one more can be added."""
    path = tmp_path / "i.index"
    index = offset_index(path)
    for step in range(10):
        index.append(BASE + step, step)
    index.close()
    again = offset_index(path, max_bytes=24, length=80)
    assert again.is_full
    again.append(BASE + 10, 10)
    again.close()
    assert path.read_bytes() == b"".join(struct.pack(">ii", step, step) for step in range(11))


def test_full(tmp_path: Path) -> None:
    """An index says when it is full; the time index keeps its last slot for the roll."""
    offsets = offset_index(tmp_path / "i.index", max_bytes=24)
    times = time_index(tmp_path / "i.timeindex", max_bytes=36)
    for step in range(1, 3):
        assert not offsets.is_full
        assert not times.is_full
        offsets.append(BASE + step, step)
        times.maybe_append(step, BASE + step)
    assert not offsets.is_full
    assert times.is_full
    offsets.append(BASE + 3, 3)
    assert offsets.is_full
    offsets.release()
    times.release()


def test_offsets_must_ascend(tmp_path: Path) -> None:
    """An entry that does not follow the last one, or is out of reach, is refused."""
    index = offset_index(tmp_path / "i.index")
    index.append(BASE + 5, 1)
    with pytest.raises(ValueError, match="follow"):
        index.append(BASE + 5, 2)
    with pytest.raises(ValueError, match="reach"):
        index.append(BASE + (1 << 31), 2)
    index.release()


@given(
    entries=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=40),
    asked=st.integers(-3, 320),
)
def test_time_lookup(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[int, int]], asked: int
) -> None:
    """Only growing timestamps are added; a lookup finds the last entry at or below the timestamp."""
    index = time_index(tmp_path_factory.mktemp("index") / "i.timeindex")
    kept: list[TimeEntry] = []
    for offset, (timestamp, _) in enumerate(entries):
        index.maybe_append(timestamp, BASE + offset)
        if timestamp > (kept[-1].timestamp if kept else -1):
            kept.append(TimeEntry(timestamp, BASE + offset))
    assert [index.entry(slot) for slot in range(index.entries)] == kept
    expected = max((e for e in kept if e.timestamp <= asked), default=TimeEntry(-1, BASE))
    assert index.lookup(asked) == expected
    index.release()


def test_time_index_bytes(tmp_path: Path) -> None:
    """The entries are timestamp and relative offset, and truncation goes by the offset."""
    path = tmp_path / "i.timeindex"
    index = time_index(path)
    for step in range(1, 5):
        index.maybe_append(step * 1000, BASE + step * 10)
    index.truncate_to(BASE + 30)
    index.close()
    assert path.read_bytes() == struct.pack(">qiqi", 1000, 10, 2000, 20)


def test_corrupt_indexes(tmp_path: Path) -> None:
    """Lengths and contents that no index has are noticed."""
    path = tmp_path / "i.index"
    path.write_bytes(bytes(9))
    with pytest.raises(CorruptIndex):
        offset_index(path, length=9).check(1000)
    with pytest.raises(CorruptIndex):
        time_index(path, length=9).check()
    path.write_bytes(struct.pack(">ii", -5, 0))
    with pytest.raises(CorruptIndex):
        offset_index(path, length=8).check(1000)
    path.write_bytes(struct.pack(">ii", 5, 1000))
    with pytest.raises(CorruptIndex):
        offset_index(path, length=8).check(1000)


def test_txn_index(tmp_path: Path) -> None:
    """Aborted transactions are found by range, survive reopening and are cut by offset."""
    path = tmp_path / "i.txnindex"
    index = TxnIndex(OS_FILE_SYSTEM, str(path), 0, exists=False)
    assert not os.path.exists(path)
    first = AbortedTxn(1, 0, 10, 5)
    second = AbortedTxn(2, 5, 20, 21)
    third = AbortedTxn(1, 22, 30, 31)
    for txn in (first, second, third):
        index.append(txn)
    assert path.read_bytes()[:34] == struct.pack(">hqqqq", 0, 1, 0, 10, 5)
    with pytest.raises(ValueError, match="follow"):
        index.append(AbortedTxn(3, 1, 30, 31))
    again = TxnIndex(OS_FILE_SYSTEM, str(path), 0, exists=True)
    assert again.collect(0, 100) == ([first, second, third], False)
    assert again.collect(11, 20) == ([second], True)
    assert again.collect(15, 25) == ([second, third], True)
    again.truncate_to(20)
    assert TxnIndex(OS_FILE_SYSTEM, str(path), 0, exists=True).entries == [first]
    with pytest.raises(CorruptIndex):
        TxnIndex(OS_FILE_SYSTEM, str(path), 11, exists=True).check()
    again.reset()
    assert path.stat().st_size == 0


class RefusingDisk(OsFileSystem):
    """Takes no bytes while it is told so, and counts what it was asked."""

    def __init__(self) -> None:
        self.refuses = False
        self.writes = 0

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        self.writes += 1
        if self.refuses:
            raise OSError(errno.ENOSPC, "no space")
        return os.pwrite(fd, data, offset)


def test_many_entries_are_written_at_once(tmp_path: Path) -> None:
    """Some dozen at a time, and the rest when somebody searches among them, at the roll and at the close."""
    disk = RefusingDisk()
    for name, finish in (("trim", OffsetIndex.trim), ("close", OffsetIndex.close)):
        disk.writes = 0
        path = tmp_path / name
        index = OffsetIndex(disk, str(path), BASE, 4096, 0)
        for number in range(1, 201):
            index.append(BASE + number, number)
        assert 0 < disk.writes < 10
        assert index.last_entry == (BASE + 200, 200)
        assert index.lookup(BASE + 199) == (BASE + 199, 199)
        index.append(BASE + 201, 201)
        finish(index)
        index.release()
        assert path.read_bytes() == b"".join(struct.pack(">ii", number, number) for number in range(1, 202))


def test_entries_that_the_disk_does_not_take_are_done_without(tmp_path: Path) -> None:
    """A search goes by those before them, and later ones are added behind those."""
    disk = RefusingDisk()
    offsets = OffsetIndex(disk, str(tmp_path / "i.index"), BASE, 4096, 0)
    times = TimeIndex(disk, str(tmp_path / "i.timeindex"), BASE, 4096, 0)
    for number in (1, 2):
        offsets.append(BASE + number, number)
        times.maybe_append(number, BASE + number)
    assert offsets.entry(1) == (BASE + 2, 2)
    assert times.entry(1) == TimeEntry(2, BASE + 2)
    for number in (3, 4):
        offsets.append(BASE + number, number)
        times.maybe_append(number, BASE + number)
    disk.refuses = True
    assert offsets.lookup(BASE + 3) == (BASE + 2, 2)
    assert times.lookup(3) == TimeEntry(2, BASE + 2)
    assert (offsets.entries, times.entries) == (2, 2)
    disk.refuses = False
    offsets.append(BASE + 5, 5)
    times.maybe_append(5, BASE + 5)
    assert [offsets.entry(slot) for slot in range(offsets.entries)] == [
        (BASE + 1, 1),
        (BASE + 2, 2),
        (BASE + 5, 5),
    ]
    assert times.lookup(9) == TimeEntry(5, BASE + 5)
    offsets.append(BASE + 6, 6)
    disk.refuses = True
    with pytest.raises(OSError, match="no space"):
        offsets.close()
    disk.refuses = False
    offsets.close()
    times.close()
    assert (tmp_path / "i.index").stat().st_size == 4 * 8


class SlowDisk(OsFileSystem):
    """Lets somebody do something in the middle of a write."""

    def __init__(self) -> None:
        self.amid: Callable[[], None] | None = None

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        written = os.pwrite(fd, data, offset)
        if self.amid is not None:
            amid, self.amid = self.amid, None
            amid()
        return written


def test_a_search_in_a_thread_loses_no_entries(tmp_path: Path) -> None:
    """The log goes on while a search has the entries written that were held back."""
    disk = SlowDisk()
    index = OffsetIndex(disk, str(tmp_path / "i.index"), BASE, 4096, 0)
    for number in (1, 2, 3):
        index.append(BASE + number, number)
    appending = threading.Thread(target=lambda: index.append(BASE + 4, 4))
    disk.amid = lambda: (appending.start(), appending.join(0.05), None)[-1]
    searching = threading.Thread(target=lambda: index.lookup(BASE + 1))
    searching.start()
    searching.join()
    appending.join()
    index.append(BASE + 5, 5)
    assert [index.entry(slot) for slot in range(index.entries)] == [(BASE + n, n) for n in range(1, 6)]
    index.close()


def test_truncation_when_the_disk_does_not_take_what_was_held_back(tmp_path: Path) -> None:
    """What is beyond the end is gone all the same."""
    disk = RefusingDisk()
    offsets = OffsetIndex(disk, str(tmp_path / "i.index"), BASE, 4096, 0)
    times = TimeIndex(disk, str(tmp_path / "i.timeindex"), BASE, 4096, 0)
    for number in range(1, 101):
        offsets.append(BASE + number, number)
        times.maybe_append(number, BASE + number)
    disk.refuses = True
    assert offsets.position_before(20) == 20
    times.truncate_to(BASE + 20)
    offsets.truncate_to(BASE + 20)
    assert times.last_entry == TimeEntry(19, BASE + 19)
    assert offsets.last_entry == (BASE + 19, 19)
    assert offsets.position_before(0) == 0
    offsets.release()
    times.release()
