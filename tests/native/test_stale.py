"""What is compiled is left out when it is older than its sources."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ottla.native import is_older_than_sources


def touch(path: Path, seconds: int) -> None:
    path.touch()
    os.utime(path, (seconds, seconds))


@pytest.mark.parametrize(
    ("sources", "is_older"),
    [({}, False), ({"a.c": 5, "b.h": 9}, False), ({"a.c": 5, "b.h": 11}, True), ({".#a.c": 11}, False)],
)
def test_the_youngest_source_counts(tmp_path: Path, sources: dict[str, int], is_older: bool) -> None:
    """Where there are no sources, as in an installed package, it is always good."""
    touch(tmp_path / "_speed.so", 10)
    touch(tmp_path / "__init__.py", 20)
    for name, seconds in sources.items():
        touch(tmp_path / name, seconds)
    assert is_older_than_sources(str(tmp_path / "_speed.so")) is is_older


def test_it_is_used_in_this_checkout_when_it_is_fresh(speed: ModuleType) -> None:
    """The fixture has built it anew, if it had to."""
    told = subprocess.run(
        [sys.executable, "-c", "from ottla import native; print(native.is_stale, native.speed is not None)"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OTTLA_NATIVE": "1"},
    )
    assert told.stdout.split() == ["False", "True"]
