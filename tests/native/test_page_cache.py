"""Whether a stretch of a file is in memory, as the compiled function and its twin see it."""

import os
from pathlib import Path
from types import ModuleType

import pytest

from ottla.log_store.page_cache import probe

MEGABYTE = 1024 * 1024
SIZE = 20 * MEGABYTE  # more pages than are asked for at once


def test_what_is_in_memory(speed: ModuleType, tmp_path: Path) -> None:
    """A file that was just written is, wholly; of one that the system was asked to forget, what was read since."""
    path = tmp_path / "log"
    path.write_bytes(bytes(SIZE))
    with path.open("rb", buffering=0) as file:
        fd = file.fileno()
        for is_in_memory in (speed.is_in_memory, probe):
            assert is_in_memory(fd, 3, SIZE - 3)
            assert is_in_memory(fd, SIZE - 1, 1)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # not to be read ahead
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        if speed.is_in_memory(fd, SIZE // 2, SIZE // 2):
            pytest.skip("the system keeps it in memory, or does not tell")
        os.pread(fd, 100, 10 * MEGABYTE)
        assert speed.is_in_memory(fd, 10 * MEGABYTE + 7, 10)
        assert not speed.is_in_memory(fd, 10 * MEGABYTE - 1, 10)
        assert not speed.is_in_memory(fd, 10 * MEGABYTE, MEGABYTE)
        assert not speed.is_in_memory(fd, 10 * MEGABYTE, SIZE - 10 * MEGABYTE)
        for position in range(0, SIZE - MEGABYTE, MEGABYTE):
            os.pread(fd, MEGABYTE, position)
        assert speed.is_in_memory(fd, 0, SIZE - MEGABYTE)
        assert not speed.is_in_memory(fd, 0, SIZE)
        os.pread(fd, MEGABYTE, SIZE - MEGABYTE)
        assert speed.is_in_memory(fd, 0, SIZE)
        assert probe(fd, 0, SIZE)


def test_what_cannot_be_told_is_taken_to_be(speed: ModuleType, tmp_path: Path) -> None:
    """Who reads it finds out what is wrong."""
    path = tmp_path / "empty"
    path.touch()
    with path.open("rb") as file:
        for is_in_memory in (speed.is_in_memory, probe):
            assert is_in_memory(file.fileno(), 0, 0)
            assert is_in_memory(-1, 0, 100)
    assert speed.is_in_memory(0, -5, 10)
    with pytest.raises(TypeError):
        speed.is_in_memory(1, 2)
    with pytest.raises(TypeError):
        speed.is_in_memory(1, 2, "3")
    with pytest.raises(OverflowError):
        speed.is_in_memory(1, 2, 1 << 70)
