"""What is measured, how long it has taken and about how much longer it takes, on the screen."""

import time
from collections.abc import Sequence

from benchmarks.bench import Part
from benchmarks.measures import Entry, Measure, shown

# What is not known yet is guessed: a short run does a fraction of the work, and starts as many brokers.
QUICK_SHARE = 0.25


class Progress:
    """Knows every step that is still to come: a part on a broker in a round."""

    def __init__(self, steps: Sequence[tuple[str, Part]], quick: bool) -> None:
        self._started = time.monotonic()
        self._left = list(steps)
        self._quick = quick
        self._seen: dict[tuple[str, str], float] = {}
        self._taken: dict[tuple[str, str], float] = {}  # by steps that have begun
        self._label = ""
        self._turn_started = self._started

    def add(self, steps: Sequence[tuple[str, Part]]) -> None:
        """There is more to do than was known."""
        self._left += steps

    def begin(self, label: str) -> None:
        """A step begins, or goes on."""
        self._label = label
        self._turn_started = time.monotonic()

    def pause(self, broker: str, part: Part) -> None:
        """A step goes on later."""
        self._taken[broker, part.name] = self._taken_by(broker, part)
        self._turn_started = time.monotonic()

    def end(self, broker: str, part: Part) -> None:
        """A step is done, or has failed."""
        self._seen[broker, part.name] = self._taken_by(broker, part)
        self._taken.pop((broker, part.name), None)
        self._turn_started = time.monotonic()
        if (broker, part) in self._left:
            self._left.remove((broker, part))

    def _taken_by(self, broker: str, part: Part) -> float:
        return self._taken.get((broker, part.name), 0.0) + time.monotonic() - self._turn_started

    def seconds_left(self) -> float:
        """About how long the steps that are left take."""
        guessed = sum(self._guess(broker, part) for broker, part in self._left)
        return max(guessed - sum(self._taken.values()), 0.0)

    def _guess(self, broker: str, part: Part) -> float:
        seen = self._seen.get((broker, part.name))
        if seen is not None:
            return seen
        return part.seconds * (QUICK_SHARE if self._quick else 1.0)

    def say(self, text: str) -> None:
        """A line with the time that has passed and that is left."""
        elapsed = time.monotonic() - self._started
        left = max(self.seconds_left() - (time.monotonic() - self._turn_started), 0)
        print(f"{_minutes(elapsed)} (about {_minutes(left)} left)  {self._label:34} {text}", flush=True)

    def figure(self, measure: Measure, entry: Entry) -> None:
        """A figure has been taken."""
        busy = (
            f"  client {entry.client:4.0%} +{entry.client_waits:4.0%}, {entry.cores:.1f} cores"
            if entry.client
            else ""
        )
        self.say(f"{measure.title:56} {shown(measure, entry.value):>16}{busy}")


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60:2}:{int(seconds) % 60:02}"
