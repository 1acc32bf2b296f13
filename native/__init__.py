"""The compiled twins of a few functions that are called for every request or every record.

`speed` is the compiled module, or None where it could not be built (no C compiler) or is not wanted
(`OTTLA_NATIVE=0`, as in the tests). Each function in it has a twin in Python beside the place where it is used, does
exactly the same, and is compared with it in tests/native. Nothing needs it: it makes the same broker quicker.
"""

from __future__ import annotations

import os
from types import ModuleType

speed: ModuleType | None = None
if os.environ.get("OTTLA_NATIVE", "1") != "0":
    try:
        from ottla.native import _speed as speed  # type: ignore[attr-defined, no-redef]
    except ImportError:
        speed = None

__all__ = ["speed"]
