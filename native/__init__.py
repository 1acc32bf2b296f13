"""The compiled twins of a few functions that are called for every request or every record.

`speed` is the compiled module, or None where it could not be built (no C compiler), is older than its sources, or is
not wanted (`OTTLA_NATIVE=0`, as in the tests). Each function in it has a twin in Python beside the place where it is
used, does exactly the same, and is compared with it in tests/native. Nothing needs it: it makes the same broker
quicker.
"""

from __future__ import annotations

import os
from types import ModuleType


def is_older_than_sources(compiled: str) -> bool:
    """Whether a source beside the compiled file has changed since: in a checkout whose files were updated without
    `make` it speaks another language than the Python around it."""
    with os.scandir(os.path.dirname(compiled)) as files:
        sources = [
            each.stat().st_mtime_ns
            for each in files
            if each.name.endswith((".c", ".h")) and not each.name.startswith(".")  # an editor's own
        ]
    return os.stat(compiled).st_mtime_ns < max(sources, default=0)


speed: ModuleType | None = None
is_stale = False
if os.environ.get("OTTLA_NATIVE", "1") != "0":
    try:
        from ottla.native import _speed  # type: ignore[attr-defined]

        is_stale = is_older_than_sources(_speed.__file__)
        speed = None if is_stale else _speed
    except ImportError:
        pass

__all__ = ["is_stale", "speed"]
