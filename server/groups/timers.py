"""Timers of coordinators: one task, one heap.

Most timers are sessions that every heartbeat pushes further away. So a timer that moves back leaves its entry in
the heap where it is, and the entry is put back when it comes up too early.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import trio

from ottla.server.turns import Turns

Key = TypeVar("Key", bound=Hashable)


class Timers(Generic[Key]):
    """Calls `fire` with the key of each timer that is due."""

    def __init__(self, fire: Callable[[Key], None]) -> None:
        self._fire = fire
        self._deadlines: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._queued: dict[Key, float] = {}  # the earliest entry in the heap
        self._count = itertools.count()
        self._earlier = trio.Event()

    def set(self, key: Key, deadline: float) -> None:
        """Fire at `deadline` of trio's clock, and not when it was set to fire before."""
        self._deadlines[key] = deadline
        if deadline < self._queued.get(key, float("inf")):
            self._push(key, deadline)
            if self._heap[0][2] == key:
                self._earlier.set()

    def cancel(self, key: Key) -> None:
        self._deadlines.pop(key, None)

    def cancel_all(self, belongs: Callable[[Key], bool]) -> None:
        for key in [key for key in self._deadlines if belongs(key)]:
            del self._deadlines[key]

    async def run(self) -> None:
        """Fire timers until cancelled."""
        while True:
            self._earlier = trio.Event()
            if self._heap:
                with trio.move_on_at(self._heap[0][0]):
                    await self._earlier.wait()
            else:
                await self._earlier.wait()
            await self._fire_due(trio.current_time())

    async def _fire_due(self, now: float) -> None:
        """Fire what is due; when that is much, such as every session of a large group, others get their turn."""
        async with Turns() as turns:
            while self._heap and self._heap[0][0] <= now:
                at, _, key = heapq.heappop(self._heap)
                if self._queued.get(key) == at:
                    del self._queued[key]
                deadline = self._deadlines.get(key)
                if deadline is None:
                    continue
                if deadline > now:
                    if key not in self._queued:
                        self._push(key, deadline)
                    continue
                del self._deadlines[key]
                self._fire(key)
                await turns.rest()

    def _push(self, key: Key, deadline: float) -> None:
        self._queued[key] = deadline
        heapq.heappush(self._heap, (deadline, next(self._count), key))
