"""Requests about very many things: their work is done in turns with everybody else's.

Up to QUICK_ELEMENTS a request is decoded, answered and encoded in one go, which takes some milliseconds at most. Above
that, decoding and encoding are given to a worker thread, from which the interpreter takes its lock back every few
milliseconds, and handlers whose work is one thing after the other let the loop go on in between.
"""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TypeVar

import trio

QUICK_ELEMENTS = 5_000
TURN_SECONDS = 0.004

Item = TypeVar("Item")
Result = TypeVar("Result")


_turn: trio.lowlevel.RunVar[trio.Lock] = trio.lowlevel.RunVar("turn")


async def map_in_turns(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """What `function` makes of each item; the loop goes on whenever that has taken a while, and between the turns of
    two that are at such work."""
    results = []
    turn = _turn_of_this_run()
    async with turn:
        turn_ends = perf_counter() + TURN_SECONDS
        for item in items:
            results.append(function(item))
            if perf_counter() > turn_ends:
                turn.release()
                with trio.CancelScope(shield=True):  # it is released once more in any case
                    await turn.acquire()
                await trio.lowlevel.checkpoint_if_cancelled()
                turn_ends = perf_counter() + TURN_SECONDS
    return results


def _turn_of_this_run() -> trio.Lock:
    try:
        return _turn.get()
    except LookupError:
        lock = trio.Lock()
        _turn.set(lock)
        return lock
