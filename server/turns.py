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


async def map_in_turns(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """What `function` makes of each item; the loop goes on whenever that has taken a while."""
    results = []
    turn_ends = perf_counter() + TURN_SECONDS
    for item in items:
        results.append(function(item))
        if perf_counter() > turn_ends:
            await trio.lowlevel.checkpoint()
            turn_ends = perf_counter() + TURN_SECONDS
    return results
