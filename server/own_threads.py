"""Worker threads of their own for one kind of work, so that it keeps no other from its threads.

Brokers in one process, as tests have them, each have their own event loop, and a limiter of trio's belongs to one
loop: so there is one for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

Result = TypeVar("Result")


class OwnThreads:
    """At most so many threads of each event loop at once."""

    def __init__(self, name: str, count: int) -> None:
        self._count = count
        self._limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar(name)

    async def run(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Call the function in one of the threads."""
        try:
            limiter = self._limiter.get()
        except LookupError:
            limiter = trio.CapacityLimiter(self._count)
            self._limiter.set(limiter)
        return await trio.to_thread.run_sync(function, *arguments, limiter=limiter)
