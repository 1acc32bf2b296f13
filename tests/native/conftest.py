"""The compiled module, whatever OTTLA_NATIVE says; these tests are skipped where there is no compiler."""

import importlib
import runpy
from pathlib import Path
from types import ModuleType

import pytest

_ROOM = Path(__file__).parents[2] / "native"


@pytest.fixture(scope="session")
def speed() -> ModuleType:
    """Built anew if a source is younger than it."""
    build = runpy.run_path(str(_ROOM / "build.py"))
    target: Path = build["target"]()
    youngest = max(path.stat().st_mtime for path in (*_ROOM.glob("*.c"), *_ROOM.glob("*.h")))
    if not target.exists() or target.stat().st_mtime < youngest:
        why = build["build"]()
        if why is not None and "No such file" in why:
            pytest.skip(f"no C compiler: {why}")
        assert why is None
    return importlib.import_module("ottla.native._speed")
