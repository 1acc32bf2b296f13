"""Timers of coordinators: one heap, moved deadlines, no lost wake-ups."""

import itertools

import pytest
import trio
import trio.testing

from ottla.server import turns
from ottla.server.groups.timers import Timers


class Fired:
    """Notes what fired when."""

    def __init__(self) -> None:
        self.timers: Timers[str] = Timers(self.note)
        self.seen: list[tuple[str, float]] = []
        self.start = trio.current_time()

    def note(self, key: str) -> None:
        self.seen.append((key, round(trio.current_time() - self.start, 3)))

    def set(self, key: str, after: float) -> None:
        self.timers.set(key, trio.current_time() + after)


async def test_they_fire_in_their_order(autojump_clock: trio.testing.MockClock) -> None:
    """At their time, whatever the order in which they were set, also before the task runs."""
    fired = Fired()
    fired.set("b", 2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fired.timers.run)
        fired.set("c", 3)
        fired.set("a", 1)
        await trio.sleep(2.5)
        fired.set("d", 0)
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert fired.seen == [("a", 1), ("b", 2), ("d", 2.5), ("c", 3)]


async def test_moved_and_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    """Later, earlier, later again, and not at all."""
    fired = Fired()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fired.timers.run)
        for key in ("later", "earlier", "never", "both"):
            fired.set(key, 5)
        fired.set("later", 7)
        fired.set("earlier", 3)
        fired.timers.cancel("never")
        fired.set("both", 1)
        fired.set("both", 9)
        await trio.sleep(20)
        fired.timers.cancel("later")  # long gone
        fired.set("never", 1)
        await trio.sleep(20)
        nursery.cancel_scope.cancel()
    assert fired.seen == [("earlier", 3), ("later", 7), ("both", 9), ("never", 21)]


async def test_set_by_what_fires(autojump_clock: trio.testing.MockClock) -> None:
    """A timer may set itself again, and cancel others that are due."""
    fired = Fired()

    def again(key: str) -> None:
        fired.note(key)
        if len(fired.seen) < 3:
            fired.set(key, 2)
        fired.timers.cancel_all(lambda other: other == "victim")

    fired.timers = Timers(again)
    fired.set("self", 2)
    fired.set("victim", 2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fired.timers.run)
        await trio.sleep(30)
        nursery.cancel_scope.cancel()
    assert fired.seen == [("self", 2), ("self", 4), ("self", 6)]


async def test_heartbeats_leave_one_entry(autojump_clock: trio.testing.MockClock) -> None:
    """A deadline that is always pushed back does not fill the heap."""
    fired = Fired()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fired.timers.run)
        for _ in range(1000):
            fired.set("session", 10)
            await trio.sleep(0.1)
        assert len(fired.timers._heap) == 1
        nursery.cancel_scope.cancel()
    assert fired.seen == []


async def test_many_at_once_leave_others_their_turn(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timers that are due together and take long to handle do not fire all in one go."""
    milliseconds = itertools.count()
    monkeypatch.setattr(turns, "perf_counter", lambda: next(milliseconds) / 1000)
    fired = Fired()
    for number in range(100):
        fired.set(f"t{number}", 1)
    seen_between: set[int] = set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fired.timers.run)
        await trio.sleep(1)
        while len(fired.seen) < 100:
            seen_between.add(len(fired.seen))
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    # One turn fires a few of them, and two turns may come between two looks: Trio takes tasks in any order.
    assert len(seen_between) >= 8
