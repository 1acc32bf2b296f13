"""Blocks that are set aside for a file before it grows."""

import errno
import os
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from ottla.log_store.file_room import make_room, note_room, room_wanted
from ottla.log_store.files import FIRST_ROOM_BYTES, OS_FILE_SYSTEM, LogFile, OsFileSystem

MEGABYTE = 1024 * 1024


@pytest.fixture
def file(tmp_path: Path) -> LogFile:
    made = LogFile.create(OS_FILE_SYSTEM, str(tmp_path / "0.log"))
    made.append(b"x" * 1000)
    return made


def taken(file: LogFile) -> int:
    return os.fstat(file.fd).st_blocks * 512


def test_room_is_there_and_the_length_stays(speed: ModuleType, file: LogFile) -> None:
    """The file ends where it did; what is appended lies in the room."""
    reason = speed.reserve(file.fd, file.size, 8 * MEGABYTE)
    if reason in (errno.EOPNOTSUPP, errno.ENOTSUP):
        pytest.skip("this file system does not set blocks aside")
    assert reason == 0
    assert os.fstat(file.fd).st_size == 1000
    assert taken(file) >= 8 * MEGABYTE
    file.append(b"y" * 1000)
    assert file.read(0, 5000) == b"x" * 1000 + b"y" * 1000


def test_a_bad_descriptor_is_told_and_other_arguments_are_refused(speed: ModuleType) -> None:
    """Nothing is raised for what the system says."""
    assert speed.reserve(-1, 0, 10) == errno.EBADF
    with pytest.raises(TypeError):
        speed.reserve(1, 2)
    with pytest.raises(TypeError):
        speed.reserve(1, 2, "3")
    with pytest.raises(OverflowError):
        speed.reserve(1, 2, 1 << 70)


def test_what_was_not_used_is_given_back(
    speed: ModuleType, file: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the segment takes no more, and after a crash, too."""
    monkeypatch.setattr("ottla.log_store.files.speed", speed)
    file.append(b"x" * 5 * MEGABYTE)
    end = room_wanted(file, 4 * MEGABYTE, 100 * MEGABYTE)
    is_useful = make_room(file, end)
    note_room(file, end, 100 * MEGABYTE, is_useful=is_useful)
    if not is_useful:
        pytest.skip("this file system does not set blocks aside")
    assert taken(file) > file.size + 4 * MEGABYTE
    again = LogFile.open(OS_FILE_SYSTEM, file.path)  # as if the process had died
    assert again.room_end > file.size + 4 * MEGABYTE
    again.truncate(again.size)
    assert taken(file) < file.size + MEGABYTE
    assert os.fstat(file.fd).st_size == file.size


def test_a_disk_that_is_nearly_full_is_left_alone(file: LogFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others need what is left more; the append finds its blocks by itself."""
    little = SimpleNamespace(f_bavail=100, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda path: little)
    assert make_room(file, file.size + MEGABYTE)
    assert taken(file) < MEGABYTE


def test_a_disk_that_has_no_such_thing_is_asked_once(file: LogFile) -> None:
    """For each segment."""

    class Plain(OsFileSystem):
        """As where nothing is compiled."""

        @staticmethod
        def reserve(fd: int, begin: int, length: int) -> int:
            return errno.EOPNOTSUPP

    file.fs = Plain()
    assert not make_room(file, file.size + 100)
    note_room(file, file.size + 100, 100 * MEGABYTE, is_useful=False)
    assert file.room_mark > 1 << 60


def test_a_file_without_room_keeps_its_time(file: LogFile) -> None:
    """Retention may go by it."""
    os.utime(file.path, (1, 1))
    file.truncate(file.size)
    assert os.stat(file.path).st_mtime == 1


def test_room_is_for_a_share_of_what_there_is_and_ends_with_the_segment(file: LogFile) -> None:
    """A quarter, but no more than 64 MB, and what is about to be appended in any case."""
    assert file.room_mark == FIRST_ROOM_BYTES
    file.size = 40 * MEGABYTE
    assert room_wanted(file, 100, 1000 * MEGABYTE) == 100 + 51 * MEGABYTE
    file.size = 800 * MEGABYTE
    assert room_wanted(file, 100, 2000 * MEGABYTE) == 100 + 865 * MEGABYTE
    assert room_wanted(file, 100, 810 * MEGABYTE) == 810 * MEGABYTE
