"""Website activity: what users of a shop do, with all that goes wrong on the way.

A run has a clock of its own that goes faster than the wall's. Events arrive in the order of that clock; most of them
happened a moment before, some minutes before, a few too long ago. Some arrive twice, and some are broken. Everything
follows from the seed, so that two runs with the same settings and format send the same records.
"""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from spark_demo.formats import Event, Format

ALLOWED_LATENESS_MS = 5 * 60_000
LATE_MS = 30_000  # later than most, and welcome still
EVENT_TYPES = ("view", "search", "click")

_TYPE_WEIGHTS = (70, 20, 10)
_LATE_SHARE, _TOO_LATE_SHARE, _TWICE_SHARE, _BROKEN_SHARE = 0.03, 0.005, 0.02, 0.01
_COUNTRIES = ("AR", "DE", "IN", "JP", "KE", "NO", "US")
_WORDS = ("lamp", "chair", "table", "rug", "shelf", "mirror", "clock")


@dataclass(frozen=True)
class Settings:
    """How much happens, and how fast."""

    seed: int = 7
    users: int = 300
    pages: int = 20
    events_per_second: int = 1_000  # of the wall's clock
    speed: int = 60  # seconds of the run's clock in one of the wall's
    start_ms: int = 0


@dataclass(frozen=True)
class Arrival:
    """One record on its way into the topic."""

    key: bytes
    value: bytes
    timestamp_ms: int


def user_changes(settings: Settings) -> Iterator[tuple[bytes, bytes | None]]:
    """What the compacted topic of users is told: everybody once or more, some leave again (None)."""
    rng = random.Random(settings.seed)
    for number in range(settings.users):
        for _ in range(rng.randint(1, 3)):
            user = {"user_id": _user(number), "country": rng.choice(_COUNTRIES), "paying": rng.random() < 0.3}
            yield _user(number).encode(), json.dumps(user).encode()
        if rng.random() < 0.05:
            yield _user(number).encode(), None


def arrivals(settings: Settings, written: Format, count: int) -> Iterator[Arrival]:
    """The first `count` events in the order of their arrival, and what arrives twice among them."""
    rng = random.Random(settings.seed + 1)
    again: list[tuple[int, int, bytes, bytes]] = []
    for number in range(count):
        now_ms = settings.start_ms + number * 1000 * settings.speed // settings.events_per_second
        while again and again[0][0] <= now_ms:
            at_ms, _, key, value = heapq.heappop(again)
            yield Arrival(key, value, at_ms)
        event = _event(rng, settings, number, now_ms)
        key, value = event["user_id"].encode(), written.encode(event)
        if rng.random() < _BROKEN_SHARE:
            value = written.encode_broken(rng, event)
        elif rng.random() < _TWICE_SHARE:
            heapq.heappush(again, (now_ms + rng.randint(1_000, 60_000), number, key, value))
        yield Arrival(key, value, now_ms)


def _event(rng: random.Random, settings: Settings, number: int, now_ms: int) -> Event:
    # A few users do most of it, as everywhere.
    user = _user(min(int(rng.paretovariate(0.6)) - 1, settings.users - 1))
    kind = rng.choices(EVENT_TYPES, _TYPE_WEIGHTS)[0]
    return {
        "event_id": f"{settings.seed}-{number}",
        "user_id": user,
        "type": kind,
        "page": f"/{rng.choice(_WORDS)}/{rng.randrange(settings.pages)}",
        "query": rng.choice(_WORDS) if kind == "search" else None,
        "event_time_ms": now_ms - _delay_ms(rng),
    }


def _delay_ms(rng: random.Random) -> int:
    share = rng.random()
    if share < _TOO_LATE_SHARE:
        return rng.randint(2 * ALLOWED_LATENESS_MS, 10 * ALLOWED_LATENESS_MS)
    if share < _TOO_LATE_SHARE + _LATE_SHARE:
        return rng.randint(60_000, ALLOWED_LATENESS_MS - 60_000)
    return rng.randint(0, 5_000)


def _user(number: int) -> str:
    return f"user-{number}"
