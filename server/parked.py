"""A request that waits for something to happen to the broker, such as a Fetch for records.

Most requests of consumers are of this kind, so waiting must cost little: it takes no task. What is waited for calls
`wake`, and then, or when the time is up, whoever holds it asks for the answer again.

A handler returns a `Parked`, whose answer is a message; a connection holds a `ParkedAnswer`, which puts bytes into its
outbox.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from ottla.server.output import Outbox


class Waiting(ABC):
    """What can be watched, for so long."""

    __slots__ = ()

    max_wait_seconds: float

    @abstractmethod
    def watch(self, wake: Callable[[], None]) -> None:
        """From now on call `wake` whenever the answer may have become possible. May be called more than once."""

    @abstractmethod
    def close(self) -> None:
        """Wait no more. May be called more than once."""

    async def _ask_until(self, ask: Callable[[bool], Any]) -> Any:
        """What `ask` answers, which is told whether the time is up, as soon as that is not None."""
        deadline = trio.current_time() + self.max_wait_seconds
        while True:
            changed = trio.Event()
            self.watch(changed.set)
            try:
                # Asked before it waits, the first time, too: nothing that has happened since must be missed.
                answer = ask(trio.current_time() >= deadline)
                if answer is not None:
                    return answer
                with trio.move_on_at(deadline):
                    await changed.wait()
            finally:
                self.close()


class Parked(Waiting):
    """What a handler returns in the place of an answer that has to wait. It can also be awaited."""

    def __init__(self, max_wait_seconds: float) -> None:
        self.max_wait_seconds = max_wait_seconds

    @abstractmethod
    def answer(self, *, time_is_up: bool) -> Any:
        """The answer; None if it still has to wait."""

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._ask_until(lambda time_is_up: self.answer(time_is_up=time_is_up)).__await__()


class ParkedAnswer(Waiting):
    """A request of one connection that waits without a task."""

    __slots__ = ()

    @abstractmethod
    def try_to_answer(self, outbox: Outbox, *, time_is_up: bool) -> bool:
        """Put the answer into the outbox, if it can be given."""

    async def wait(self, outbox: Outbox) -> None:
        """The same by awaiting, when what is ready has been sent."""
        await outbox.flush()
        await self._ask_until(lambda time_is_up: self.try_to_answer(outbox, time_is_up=time_is_up) or None)
