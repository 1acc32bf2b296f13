"""Worker threads: what is raised in them, and threads of their own for one kind of work, so that it keeps no other from
its threads.

Brokers in one process, as tests have them, each have their own event loop, and a limiter of trio's belongs to one
loop: so there is one for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import trio

Result = TypeVar("Result")


async def run_in_thread(
    function: Callable[..., Result], *arguments: object, limiter: trio.CapacityLimiter | None = None
) -> Result:
    """As trio's own, for what is often refused: an error that comes from there is part of a circle, since frames that
    it leads to also hold it, and keeps what it was about until the collector comes."""
    errors: list[Exception] = []
    result = await trio.to_thread.run_sync(_call, function, arguments, errors, limiter=limiter)
    if errors:
        raise errors.pop()
    return cast("Result", result)


def _call(
    function: Callable[..., Result], arguments: tuple[object, ...], errors: list[Exception]
) -> Result | None:
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
        errors.append(error)
        return None


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
        return await run_in_thread(function, *arguments, limiter=limiter)
