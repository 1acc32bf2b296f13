"""Memory that is used before a clock runs."""

import mmap

import pytest

from benchmarks import free_memory


def test_it_is_used_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as is asked for, but never more than half of what there is."""
    made: list[tuple[int, int]] = []

    class Map:
        def __init__(self, fd: int, size: int, flags: int) -> None:
            made.append((size, flags))

        def close(self) -> None:
            made.append((0, 0))

    monkeypatch.setattr(mmap, "mmap", Map)
    monkeypatch.setattr(free_memory, "_available_bytes", lambda: 1000)
    for size in (10, 5000, 0):
        free_memory.use_free_memory(size)
    assert [size for size, _ in made] == [10, 0, 500, 0]
    assert made[0][1] & mmap.MAP_POPULATE


def test_for_real() -> None:
    """The system has some."""
    assert free_memory._available_bytes() > 0
    free_memory.use_free_memory(1 << 20)
