"""Memory that stays at hand while a benchmark runs."""

import re
from pathlib import Path

import pytest

from benchmarks import held_memory
from benchmarks.held_memory import BLOCK_BYTES, LEFT_ALONE_BYTES, PAGE_BYTES

BLOCKS = 16


def _own_bytes() -> int:
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


@pytest.fixture(autouse=True)
def little_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with some blocks, and a bit of another, more than what is left alone."""
    free = LEFT_ALONE_BYTES + BLOCKS * BLOCK_BYTES + 5
    monkeypatch.setattr(held_memory, "available_bytes", lambda: free)


def test_a_page_of_each_block_is_kept() -> None:
    """All was used, and little of it is left."""
    before = _own_bytes()
    with held_memory.held_memory() as size:
        assert size == BLOCKS * BLOCK_BYTES
        assert _own_bytes() - before < size // 4
    assert _own_bytes() - before < BLOCKS * PAGE_BYTES + size // 8


@pytest.mark.parametrize(
    ("most", "held"), [(3 * BLOCK_BYTES + 1, 3 * BLOCK_BYTES), (BLOCK_BYTES - 1, 0), (0, 0)]
)
def test_no_more_than_is_asked_for(most: int, held: int) -> None:
    """In whole blocks."""
    with held_memory.held_memory(most) as size:
        assert size == held


def test_a_machine_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken where little is free."""
    monkeypatch.setattr(held_memory, "available_bytes", lambda: LEFT_ALONE_BYTES)
    with held_memory.held_memory() as size:
        assert size == 0


def test_the_system_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much is free; else nothing would be held."""
    monkeypatch.undo()
    assert held_memory.available_bytes() > 0


def test_nothing_stays_open() -> None:
    """The pipes are closed with it."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    with held_memory.held_memory(3 * BLOCK_BYTES):
        assert len(list(Path("/proc/self/fd").iterdir())) == before + 2
    assert len(list(Path("/proc/self/fd").iterdir())) == before
