"""Reads of a log that look only at what is in memory: they say what is missing, and then find what others find."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store import index_file
from ottla.log_store.log import Log
from ottla.log_store.page_cache import NotInMemory
from ottla.log_store.timestamps import BatchSearch, TimestampOffset, first_found
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch
from tests.log_store.forgetful_disk import ForgetfulDisk

Found = TypeVar("Found")

BATCHES = 100
MANY = 400


@pytest.fixture
def disk() -> ForgetfulDisk:
    return ForgetfulDisk()


@pytest.fixture
def log(tmp_path: Path, disk: ForgetfulDisk) -> Log:
    """Two segments of fifty batches of 3 KB, and an active one of a single batch."""
    made = Log.create(tmp_path / "t-0", TOPIC_ID, TopicConfig(), now_ms=NOW_MS, fs=disk)
    for number in range(BATCHES + 1):
        if number in (BATCHES // 2, BATCHES):
            made.roll(NOW_MS)
        append(made, batch(b"v" * 3000, timestamps=[NOW_MS + 10 * number]))
    disk.forget()
    return made


def brought(look: Callable[[], Found]) -> tuple[Found, list[str]]:
    """What is found in the end, and the kinds of files of which something was missing until then."""
    missed = []
    while True:
        try:
            return look(), missed
        except NotInMemory as missing:
            missed.append(Path(missing.place[0]).suffix)
            missing.bring()


def read(log: Log, offset: int, *, only_cached: bool = True) -> tuple[str, int, int] | None:
    found = log.read(
        offset, 10_000, upto=log.high_watermark, at_least_one=True, only_cached=only_cached
    ).records
    return None if found is None else (str(found.file), found.position, found.length)


def test_what_is_missing_is_said_and_then_found(log: Log, disk: ForgetfulDisk) -> None:
    """First the index, then where it leads; nothing is waited for before it is brought."""
    with pytest.raises(NotInMemory):
        read(log, 30)
    assert disk.waited == []
    found, missed = brought(lambda: read(log, 30))
    assert missed == [".index", ".log"]
    assert found == read(log, 30, only_cached=False)
    disk.waited.clear()
    assert read(log, 30) == found
    assert disk.waited == []


def test_every_offset_is_found_as_by_a_read_that_waits(log: Log, disk: ForgetfulDisk) -> None:
    """Whatever was read before."""
    for offset in range(BATCHES):
        found, _ = brought(lambda offset=offset: read(log, offset))
        assert found == read(log, offset, only_cached=False)
    disk.forget()
    for offset in reversed(range(BATCHES)):
        found, _ = brought(lambda offset=offset: read(log, offset))
        assert found == read(log, offset, only_cached=False)


def test_the_end_of_the_log_needs_no_files(log: Log, disk: ForgetfulDisk) -> None:
    """Where its last batches lie is known."""
    assert read(log, BATCHES) is not None
    assert read(log, BATCHES + 1) is None
    assert disk.waited == []


def test_an_index_is_not_asked_for_each_time(
    log: Log, disk: ForgetfulDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was in memory a moment ago still is; after a while it is looked at again."""
    now = [1000.0]
    monkeypatch.setattr(index_file, "monotonic", lambda: now[0])
    assert brought(lambda: read(log, 30))[1] == [".index", ".log"]
    disk.forget()
    assert brought(lambda: read(log, 30))[1] == [".log"]
    now[0] += 10
    disk.forget()
    assert brought(lambda: read(log, 30))[1] == [".index", ".log"]


@pytest.mark.parametrize("timestamp", [NOW_MS, NOW_MS + 333, NOW_MS + 700, None])
def test_records_are_found_by_time(log: Log, timestamp: int | None) -> None:
    """Both indexes are needed, but for the greatest time, and the batches."""
    found, missed = brought_by_time(log, timestamp)
    assert missed
    assert found is not None
    assert found == first_found(log.steps_by_time(timestamp))


def brought_by_time(log: Log, timestamp: int | None) -> tuple[TimestampOffset | None, list[str]]:
    """As `brought`, for a look-up by time, which goes on by itself."""
    missed = []
    for step in log.steps_by_time(timestamp, only_cached=True):
        if isinstance(step, NotInMemory):
            missed.append(Path(step.place[0]).suffix)
            step.bring()
        elif step is not None and (found := step.run()) is not None:
            return found, missed
    return None, missed


def log_of_one_time(tmp_path: Path, disk: ForgetfulDisk, **config: int) -> Log:
    """Two segments: one of many batches that all have the same time but the last, and one that holds a later time."""
    made = Log.create(tmp_path / "t-0", TOPIC_ID, TopicConfig(**config), now_ms=NOW_MS, fs=disk)
    for number in range(MANY):
        append(made, batch(b"v" * 3000, timestamps=[NOW_MS + number // (MANY - 1) * 10]))
    made.roll(NOW_MS)
    append(made, batch(b"later", timestamps=[NOW_MS + 20]))
    disk.forget()
    return made


def test_a_long_way_by_time_is_gone_once(tmp_path: Path, disk: ForgetfulDisk) -> None:
    """The time index leads to the first of very many batches of that time: each stretch is brought, the loop has a
    rest after each, and none is read again from the beginning."""
    log = log_of_one_time(tmp_path, disk)
    steps = log.steps_by_time(NOW_MS + 5, only_cached=True)
    rests, brought_before = 0, 0
    for step in steps:
        assert disk.waited_bytes == brought_before, "the loop has waited"
        if isinstance(step, NotInMemory):
            step.bring()
        elif step is None:
            rests += 1
        else:
            found = step.run()
            assert found is not None
            assert found.offset == MANY - 1
            break
        brought_before = disk.waited_bytes
    assert rests >= 4
    assert disk.waited_bytes < 2 * log.segments[0].size


def test_segments_are_deleted_while_they_are_brought(tmp_path: Path, disk: ForgetfulDisk) -> None:
    """The look-up begins anew with those that are left."""
    log = log_of_one_time(tmp_path, disk)
    steps = log.steps_by_time(NOW_MS + 5, only_cached=True)
    missing = next(steps)
    assert isinstance(missing, NotInMemory)
    log.delete_records_before(MANY)
    log.purge_deleted_files()
    with pytest.raises(FileNotFoundError):
        missing.bring()
    assert not [name for name in os.listdir(log.directory) if name.startswith(f"{0:020}")]
    found = [step.run() for step in steps if isinstance(step, BatchSearch)]
    assert [each.offset for each in found if each] == [MANY]


def test_the_greatest_time_is_deleted_while_it_is_brought(tmp_path: Path, disk: ForgetfulDisk) -> None:
    """What is left has a greatest one, too."""
    log = log_of_one_time(tmp_path, disk)
    append(log, batch(b"x", timestamps=[NOW_MS + 40]))
    log.roll(NOW_MS)
    append(log, batch(b"y", timestamps=[NOW_MS + 30]))
    disk.forget()
    steps = log.steps_by_time(None, only_cached=True)
    assert isinstance(next(steps), NotInMemory)
    log.delete_records_before(MANY + 2)
    found = [step.run() for step in steps if isinstance(step, BatchSearch)]
    assert [(each.timestamp, each.offset) for each in found if each] == [(NOW_MS + 30, MANY + 2)]


def test_a_long_way_without_an_index_is_gone_by_a_thread(tmp_path: Path, disk: ForgetfulDisk) -> None:
    """Where hardly any batch has an entry, the rest of the way is brought as a whole."""
    log = log_of_one_time(tmp_path, disk, index_interval_bytes=1 << 30)
    found, missed = brought(lambda: read(log, MANY - 5))
    assert found == read(log, MANY - 5, only_cached=False)
    assert len(missed) <= 3
