"""How late the event loop is: for how long somebody who comes at any moment waits until the loop looks.

Between two waits for input and output the loop works through every task that can go on, and in its wait it serves the
clients that have sent something; whoever comes meanwhile waits for the rest of that pass. From the lengths of the
passes it is known how late the loop would be for somebody who comes at any moment: of a pass of `d` seconds, the first
`d - x` make him wait longer than `x`. So only passes that are long enough to matter are counted, in buckets an eighth
of an octave wide.

It costs about a microsecond for each pass, so it runs only from when it is asked for: SIGUSR1 starts it, and each
further one writes a line on the time since the one before.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

import trio

from ottla.server.ready_clients import ready_clients

log = logging.getLogger("ottla.server")

_SHORT_SECONDS = 0.0002
_BUCKETS = 8 * 40


@dataclass(frozen=True, slots=True)
class LagReport:
    """How late the loop was during a stretch of time."""

    seconds: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


class LoopLag(trio.abc.Instrument):
    """Notes how long the loop works between two waits."""

    def __init__(self) -> None:
        self._is_measuring = False
        self._longest = 0.0
        self._counts: list[int] = []
        self._sums: list[float] = []
        self._forget()

    def tell(self) -> None:
        """Begin to measure, or write down what was measured since the last time and begin anew."""
        if self._is_measuring:
            report = self.report()
            log.info(
                "loop lag seconds=%.3f p50_ms=%.3f p99_ms=%.3f p999_ms=%.3f max_ms=%.3f",
                report.seconds,
                report.p50_ms,
                report.p99_ms,
                report.p999_ms,
                report.max_ms,
            )
        else:
            self._is_measuring = True
            trio.lowlevel.add_instrument(self)
            clients = ready_clients()
            if clients is not None:
                clients.note_pass = self.note
            log.info("loop lag is measured from now on")
        self._forget()

    def tell_at_stop(self) -> None:
        """The last line, if anybody asked for lines."""
        if self._is_measuring:
            self.tell()

    def after_io_wait(self, timeout: float) -> None:
        """A pass begins."""
        self._pass_began = perf_counter()

    def before_io_wait(self, timeout: float) -> None:
        """A pass ends."""
        self.note(perf_counter() - self._pass_began)

    def note(self, seconds: float) -> None:
        """Count a pass of this length, or the time for which clients were served in the loop's wait."""
        if seconds <= _SHORT_SECONDS:
            return
        microseconds = int(seconds * 1e6)
        shift = max(microseconds.bit_length() - 4, 0)
        bucket = min(8 * shift + (microseconds >> shift), _BUCKETS - 1)
        self._counts[bucket] += 1
        self._sums[bucket] += seconds
        if seconds > self._longest:
            self._longest = seconds

    def report(self) -> LagReport:
        """What was measured since the last report."""
        seconds = perf_counter() - self._since
        passes = [
            (total / count, count) for count, total in zip(self._counts, self._sums, strict=True) if count
        ]
        p50, p99, p999 = (lateness(passes, seconds, share) * 1000 for share in (0.5, 0.99, 0.999))
        return LagReport(seconds, p50, p99, p999, self._longest * 1000)

    def _forget(self) -> None:
        self._since = self._pass_began = perf_counter()
        self._longest = 0.0
        self._counts = [0] * _BUCKETS
        self._sums = [0.0] * _BUCKETS


def lateness(passes: Iterable[tuple[float, int]], seconds: float, share: float) -> float:
    """How late the loop was at most for this share of all moments, given the lengths of passes and how many there
    were of each within `seconds`."""
    passes = list(passes)
    low, high = 0.0, max((length for length, _ in passes), default=0.0)
    for _ in range(40):
        middle = (low + high) / 2
        later = sum((length - middle) * count for length, count in passes if length > middle)
        if later > (1 - share) * seconds:
            low = middle
        else:
            high = middle
    return high
