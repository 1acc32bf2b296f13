"""Memory that is used before a clock runs."""

import tempfile
from typing import Any

import pytest

from benchmarks import free_memory


def test_it_is_used_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as is asked for, but never more than half of what there is."""
    read: list[int] = []
    make = tempfile.TemporaryFile

    def counted(**options: Any) -> Any:
        file = make(**options)
        read.append(0)

        class File:
            def __enter__(self) -> "File":
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

            def truncate(self, size: int) -> None:
                file.truncate(size)

            def readinto(self, piece: bytearray) -> int:
                done: int = file.readinto(piece)
                read[-1] += done
                return done

        return File()

    monkeypatch.setattr(tempfile, "TemporaryFile", counted)
    monkeypatch.setattr(free_memory, "_available_bytes", lambda: 10_000_000)
    for size in (10, 2_000_000, 50_000_000, 0):
        free_memory.use_free_memory(size)
    assert read == [10, 2_000_000, 5_000_000]


def test_the_system_has_some() -> None:
    """Else nothing would be done."""
    assert free_memory._available_bytes() > 0
