"""Requests about very many things: their work is done in turns with everybody else's.

Up to QUICK_ELEMENTS a request is decoded, answered and encoded in one go, which takes a millisecond or two. Above that,
decoding and encoding are given to a worker thread, as is what handlers do without touching anything that the loop
changes. The interpreter takes its lock back from such a thread as soon as the loop has wanted it for SWITCH_SECONDS.
What handlers do to the broker's own state, one thing after the other, is done in the loop, which goes on in between.

However many are at such work, one of them has a turn in a pass of the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from time import perf_counter
from typing import Self, TypeVar

import trio

from ottla.server.garbage import set_aside
from ottla.server.own_threads import OwnThreads

QUICK_ELEMENTS = 500
TURN_SECONDS = 0.002
# The loop gives the interpreter's lock away whenever it asks the system for something, some times for each request.
SWITCH_SECONDS = 0.00005

Item = TypeVar("Item")
Result = TypeVar("Result")

# One of each: more of them would only take the interpreter from each other, and from the loop.
_CODING = OwnThreads("coding", 1)
_WORKING = OwnThreads("working", 1)
_lock: trio.lowlevel.RunVar[trio.Lock] = trio.lowlevel.RunVar("turn")


async def code_in_thread(function: Callable[..., Result], *arguments: object) -> Result:
    """Decode or encode something large."""
    return await _CODING.run(function, *arguments)


async def work_in_thread(function: Callable[..., Result], *arguments: object) -> Result:
    """Do something long that touches nothing which the loop changes meanwhile."""
    return await _WORKING.run(function, *arguments)


async def work_in_thread_if(is_long: bool, function: Callable[..., Result], *arguments: object) -> Result:
    """The same if it is long, else at once."""
    return await _WORKING.run(function, *arguments) if is_long else function(*arguments)


class Turns:
    """`async with Turns() as turns` begins a turn, `await turns.rest()` ends it when it has taken long enough, and
    begins the next one when all others who are at such work have had theirs.

    Nothing else may be awaited within, or somebody may wait for a turn on whom this one waits: `outside` does that.
    """

    __slots__ = ("_lock", "ends")

    def __init__(self) -> None:
        self._lock = _lock_of_this_run()
        self.ends = 0.0

    async def __aenter__(self) -> Self:
        await self._lock.acquire()
        self.ends = perf_counter() + TURN_SECONDS
        return self

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()

    async def rest(self) -> None:
        """Let others go on if this turn has taken a while."""
        if perf_counter() > self.ends:
            set_aside()
            await self.outside(trio.lowlevel.cancel_shielded_checkpoint())

    async def outside(self, waiting: Awaitable[Result]) -> Result:
        """Wait for something between two turns."""
        self._lock.release()
        try:
            return await waiting
        finally:
            with trio.CancelScope(shield=True):  # it is released once more in any case
                await self._lock.acquire()
            self.ends = perf_counter() + TURN_SECONDS
            await trio.lowlevel.checkpoint_if_cancelled()


async def map_in_turns(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """What `function` makes of each item, in turns."""
    results = []
    async with Turns() as turns:
        for item in items:
            results.append(function(item))
            if perf_counter() > turns.ends:
                await turns.rest()
    return results


def _lock_of_this_run() -> trio.Lock:
    try:
        return _lock.get()
    except LookupError:
        lock = trio.Lock()
        _lock.set(lock)
        return lock
