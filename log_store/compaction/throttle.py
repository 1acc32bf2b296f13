"""Keeps the bytes that compaction reads and writes below log.cleaner.io.max.bytes.per.second."""

from __future__ import annotations

import time
from collections.abc import Callable


class Throttle:
    """Sleeps as long as the bytes so far are ahead of the rate; looks at the clock a few times a second."""

    def __init__(
        self,
        max_bytes_per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = max(max_bytes_per_second, 1.0)
        self._clock = clock
        self._sleep = sleep
        self._since = clock()
        self._bytes = 0
        self._look_at = self._rate * 0.1

    def spend(self, size: int) -> None:
        """Account for `size` bytes, and wait if they come too early."""
        self._bytes += size
        if self._bytes < self._look_at:
            return
        ahead = self._bytes / self._rate - (self._clock() - self._since)
        if ahead > 0:
            self._sleep(ahead)
        self._since = self._clock()
        self._bytes = 0
