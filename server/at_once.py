"""What mostly need not wait, done without a task.

To let a connection's task go on costs a pass of Trio's, which is more than many requests take. A coroutine that meets
nothing to wait for runs to its end when it is begun, wherever that is. Who begins it so must know that beforehand:
there is no going on later with what was begun here.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What the coroutine returns. RuntimeError if it wants to wait, which is a bug."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} was begun at once and wants to wait")
