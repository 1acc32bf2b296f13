"""How late the event loop is: for how long somebody who comes at any moment waits until the loop looks.

Between two waits for input and output the loop works through every task that can go on, and in its wait it serves the
clients that have sent something; whoever comes meanwhile waits for the rest of that pass. From the lengths of the
passes it is known how late the loop would be for somebody who comes at any moment: of a pass of `d` seconds, the first
`d - x` make him wait longer than `x`. So only passes that are long enough to matter are counted, in buckets an
eighth of an octave wide.

A broker that gets no core, or whose worker threads hold the interpreter, is late without having worked. So beside the
lengths of the passes stands the CPU time that the loop's own thread used in those of a millisecond and more. Asking
for it is a system call, which is made once in a millisecond: what was used up to a millisecond before is counted, too.

What is left of a pass without that and without the time in which the thread waited for a core, which the kernel counts
for each thread, it was blocked: by the disk, or by a worker thread that has the interpreter.

What the loop was doing in the pass that worked longest is told with it (see loop_places). Passes that worked for more
than a few milliseconds are counted, and the first of them told one by one. On a virtual machine a thread is also
charged for what the host does in its place: one that only counts has such passes, too.

It costs about a microsecond for each pass, so it runs only from when it is asked for: SIGUSR1 starts it, and each
further one writes a line on the time since the one before.
"""

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from threading import get_native_id
from time import perf_counter, thread_time

import trio

from ottla.server.loop_places import NOWHERE, LoopPlaces
from ottla.server.ready_clients import ready_clients
from ottla.wire.dataclass import dataclass

log = logging.getLogger("ottla.server")

_SHORT_SECONDS = 0.0002
_WORK_SECONDS = 0.001
_LONG_SECONDS = 0.005
_TOLD_LONG_PASSES = 20  # of a stretch
_BUCKETS = 8 * 40
_SCHEDSTAT_BYTES = 100  # three numbers


@dataclass(frozen=True, slots=True)
class LagReport:
    """How late the loop was during a stretch of time."""

    seconds: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    work_p999_ms: float
    work_max_ms: float
    blocked_max_ms: float
    garbage_max_ms: float
    long_passes: int
    longest_work: str


class Lengths:
    """How often which length of time was seen."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._counts = [0] * _BUCKETS
        self._sums = [0.0] * _BUCKETS

    def note(self, seconds: float) -> None:
        """Count one."""
        microseconds = int(seconds * 1e6)
        shift = max(microseconds.bit_length() - 4, 0)
        bucket = min(8 * shift + (microseconds >> shift), _BUCKETS - 1)
        self._counts[bucket] += 1
        self._sums[bucket] += seconds
        if seconds > self.longest:
            self.longest = seconds

    def lengths(self) -> list[tuple[float, int]]:
        """The mean of each bucket, and how many there are in it."""
        return [
            (total / count, count) for count, total in zip(self._counts, self._sums, strict=True) if count
        ]


class CoreWaits:
    """For how long a thread could have run and had no core, as far as the system tells."""

    def __init__(self) -> None:
        self._fd = -1

    def __del__(self) -> None:
        self.close()

    def open(self) -> None:
        """Of the thread that calls this."""
        self.close()
        with suppress(OSError):  # not Linux, or not told
            self._fd = os.open(f"/proc/self/task/{get_native_id()}/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Look no more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def seconds(self) -> float | None:
        """All of it so far; None where it is not told."""
        return int(os.pread(self._fd, _SCHEDSTAT_BYTES, 0).split()[1]) / 1e9 if self._fd >= 0 else None


class LoopLag(trio.abc.Instrument):
    """Notes how long the loop works between two waits."""

    def __init__(self) -> None:
        self._is_measuring = False
        self._places = LoopPlaces()
        self._core_waits = CoreWaits()
        self._longest_block = 0.0
        self._forget()

    def tell(self) -> None:
        """Begin to measure, or write down what was measured since the last time and begin anew."""
        if self._is_measuring:
            report = self.report()
            log.info(
                "loop lag seconds=%.3f p50_ms=%.3f p99_ms=%.3f p999_ms=%.3f max_ms=%.3f "
                "work_p999_ms=%.3f work_max_ms=%.3f blocked_max_ms=%.3f garbage_max_ms=%.3f long_passes=%d "
                "longest_work=%s",
                report.seconds,
                report.p50_ms,
                report.p99_ms,
                report.p999_ms,
                report.max_ms,
                report.work_p999_ms,
                report.work_max_ms,
                report.blocked_max_ms,
                report.garbage_max_ms,
                report.long_passes,
                report.longest_work,
            )
        else:
            self._is_measuring = True
            trio.lowlevel.add_instrument(self)
            self._places.watch()
            self._core_waits.open()
            clients = ready_clients()
            if clients is not None:
                clients.watch = self
            log.info("loop lag is measured from now on")
        self._forget()

    def tell_at_stop(self) -> None:
        """The last line, if anybody asked for lines; nothing is measured after it."""
        if self._is_measuring:
            self.tell()
            self._stop()

    def _stop(self) -> None:
        """Measure no more."""
        self._is_measuring = False
        trio.lowlevel.remove_instrument(self)
        self._places.unwatch()
        self._core_waits.close()
        clients = ready_clients()
        if clients is not None:
            clients.watch = None

    def after_io_wait(self, timeout: float) -> None:
        """A pass begins."""
        self.begin()

    def before_io_wait(self, timeout: float) -> None:
        """A pass ends."""
        self.end()

    def begin(self) -> None:
        """A pass begins, or clients are served in the loop's wait."""
        self._pass_began = now = perf_counter()
        self._places.is_working = True
        if now - self._asked_at > _WORK_SECONDS:
            self._ask(now)
            self._places.look_soon()

    def end(self) -> None:
        """It ends."""
        now = perf_counter()
        self._places.is_working = False
        seconds = now - self._pass_began
        if seconds > _SHORT_SECONDS:
            work_before, waited_before = self._work_seconds, self._waited_seconds
            if seconds > _WORK_SECONDS:
                self._ask(now)
            waited = None
            if waited_before is not None and self._waited_seconds is not None:
                waited = self._waited_seconds - waited_before
            self.note(seconds, self._work_seconds - work_before, waited)

    def _ask(self, now: float) -> None:
        self._asked_at = now
        self._work_seconds = thread_time()
        self._waited_seconds = self._core_waits.seconds()

    def note(self, seconds: float, work_seconds: float, waited_seconds: float | None = None) -> None:
        """Count a pass of this length, of which the loop's thread worked so much and waited so long for a core, if that
        is known."""
        self._passes.note(seconds)
        if work_seconds:
            work_seconds = min(work_seconds, seconds)
            place = self._places.take()
            if work_seconds > self._work.longest:
                self._longest_work = place
            self._work.note(work_seconds)
            if waited_seconds is not None:
                self._longest_block = max(self._longest_block, seconds - work_seconds - waited_seconds)
            if work_seconds > _LONG_SECONDS:
                self._long_passes += 1
                if self._long_passes <= _TOLD_LONG_PASSES:
                    log.info(
                        "loop pass ms=%.3f work_ms=%.3f place=%s", seconds * 1000, work_seconds * 1000, place
                    )

    def report(self) -> LagReport:
        """What was measured since the last report."""
        seconds = perf_counter() - self._since
        passes = self._passes.lengths()
        p50, p99, p999 = (lateness(passes, seconds, share) * 1000 for share in (0.5, 0.99, 0.999))
        work_p999 = lateness(self._work.lengths(), seconds, 0.999) * 1000
        return LagReport(
            seconds,
            p50,
            p99,
            p999,
            self._passes.longest * 1000,
            work_p999,
            self._work.longest * 1000,
            self._longest_block * 1000,
            self._places.longest_collection * 1000,
            self._long_passes,
            self._longest_work,
        )

    def _forget(self) -> None:
        self._since = self._pass_began = perf_counter()
        self._ask(self._since)
        self._passes, self._work = Lengths(), Lengths()
        self._longest_work = NOWHERE
        self._long_passes = 0
        self._longest_block = 0.0
        self._places.longest_collection = 0.0


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
