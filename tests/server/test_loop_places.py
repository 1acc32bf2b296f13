"""What the loop was doing when it took long."""

import gc
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from ottla.server.loop_lag import LoopLag
from ottla.server.loop_places import NOWHERE, LoopPlaces, place_of
from ottla.server.turns import map_in_turns


@pytest.fixture
def places() -> Iterator[LoopPlaces]:
    """Places that are watched."""
    watched = LoopPlaces()
    watched.watch()
    yield watched
    watched.unwatch()


def look(places: LoopPlaces, times: int = 1) -> None:
    """As the timer does it."""
    for _ in range(times):
        signal.raise_signal(signal.SIGPROF)


async def test_the_functions_under_way_are_named() -> None:
    """Ours from the outside in, and whom the innermost calls; those around ours are left out."""
    frames: list[FrameType | None] = []

    def note(item: str) -> None:
        import sys

        frames.append(sys._getframe())

    await map_in_turns(note, ["item"])
    assert place_of(frames[0]) == "turns.map_in_turns/test_loop_places.note"
    assert place_of(None) == NOWHERE


def test_a_pass_is_where_it_was_seen_most(places: LoopPlaces, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is seen between passes, and what is taken is forgotten."""
    seen = iter(["one", "two", "two"])
    monkeypatch.setattr("ottla.server.loop_places.place_of", lambda _: next(seen))
    look(places)
    assert places.take() == NOWHERE
    places.is_working = True
    look(places, 3)
    assert places.take() == "two"
    assert places.take() == NOWHERE


def test_a_pass_that_uses_much_is_interrupted(places: LoopPlaces) -> None:
    """The timer goes off while the loop works, without anybody's doing."""
    places.look_soon()
    places.is_working = True
    while not places._seen:
        pass
    assert places.take() != NOWHERE


def test_collections_are_timed(places: LoopPlaces) -> None:
    """In whatever pass they come."""
    assert places.longest_collection == 0
    gc.collect()
    assert places.longest_collection > 0


def test_the_place_of_the_longest_work_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that of a shorter one, nor of one that only waited for a core."""
    lag = LoopLag()
    for place, seconds, work_seconds in (("a", 0.002, 0.002), ("b", 0.03, 0.03), ("c", 0.05, 0.01)):
        lag._places.is_working = True
        monkeypatch.setattr(lag._places, "_seen", [place])
        lag.note(seconds, work_seconds)
    assert lag.report().longest_work == "b"
