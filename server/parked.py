"""A request that waits for something to happen to the broker, such as a Fetch for records.

Most requests of consumers are of this kind, so waiting must cost little: it takes no task. What is waited for calls
`wake`, and then, or when the time is up, whoever holds it asks for the answer again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import Any

import trio


class Parked(ABC):
    """What a handler returns in the place of an answer that has to wait. It can also be awaited."""

    def __init__(self, max_wait_seconds: float) -> None:
        self.max_wait_seconds = max_wait_seconds

    @abstractmethod
    def watch(self, wake: Callable[[], None]) -> None:
        """From now on call `wake` whenever the answer may have become possible. May be called more than once."""

    @abstractmethod
    def close(self) -> None:
        """Wait no more. May be called more than once."""

    @abstractmethod
    def answer(self, *, time_is_up: bool) -> Any:
        """The answer; None if it still has to wait."""

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._wait().__await__()

    async def _wait(self) -> Any:
        deadline = trio.current_time() + self.max_wait_seconds
        while True:
            changed = trio.Event()
            self.watch(changed.set)
            try:
                # Asked before it waits, the first time, too: nothing that has happened since must be missed.
                response = self.answer(time_is_up=trio.current_time() >= deadline)
                if response is not None:
                    return response
                with trio.move_on_at(deadline):
                    await changed.wait()
            finally:
                self.close()
