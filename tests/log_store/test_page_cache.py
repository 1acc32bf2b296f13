"""Reads of a log that look only at what is in memory: they say what is missing, and then find what others find."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from ottla.config.topic_config import TopicConfig
from ottla.log_store import index_file
from ottla.log_store.log import Log
from ottla.log_store.page_cache import NotInMemory
from ottla.log_store.timestamps import first_found
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch
from tests.log_store.forgetful_disk import ForgetfulDisk

Found = TypeVar("Found")

BATCHES = 100


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
    found, missed = brought(lambda: first_found(log.searches_by_time(timestamp, only_cached=True)))
    assert missed
    assert found == first_found(log.searches_by_time(timestamp))
    assert found is not None
