"""Waking the members that wait for a group, a few at a time.

When the last of a thousand members has joined, a thousand connections have an answer to encode and to send. All at once
they would hold the loop for long; so after every few of them it turns to everybody else's requests.
"""

from __future__ import annotations

from collections import deque

import trio

_AT_ONCE = 32


class Wakeups:
    def __init__(self) -> None:
        self._events: deque[trio.Event] = deque()
        self._more = trio.Event()

    def wake(self, event: trio.Event) -> None:
        """Set the event, soon."""
        self._events.append(event)
        self._more.set()

    async def run(self) -> None:
        """Wake whoever is to be woken until cancelled."""
        try:
            while True:
                await self._more.wait()
                self._more = trio.Event()
                while self._events:
                    self._wake(_AT_ONCE)
                    await trio.lowlevel.checkpoint()
        finally:
            self._wake(len(self._events))

    def _wake(self, count: int) -> None:
        for _ in range(min(count, len(self._events))):
            self._events.popleft().set()
