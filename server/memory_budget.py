"""How many bytes of requests the whole broker may hold at once (queued.max.request.bytes).

A connection reserves room for a large frame before it allocates it, and waits its turn when there is none. Not
reading is the back-pressure: TCP passes it on to the client. Large answers count too while they are sent, without
waiting, since they are there already: who reads slowly keeps others from sending more, not the broker from answering.
"""

from collections import deque

import trio


class MemoryBudget:
    """Reserve bytes first come, first served."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._waiting: deque[tuple[int, trio.Event]] = deque()

    @property
    def has_waiters(self) -> bool:
        """Whether a connection stands still for want of memory."""
        return bool(self._waiting)

    def reserve_nowait(self, size: int) -> bool:
        """Take the bytes if they are free and nobody waits. A frame larger than the limit passes when alone."""
        if self._waiting or not self._fits(size):
            return False
        self.used_bytes += size
        return True

    def take(self, size: int) -> None:
        """Count bytes that are held already, whether there is room for them or not."""
        self.used_bytes += size

    async def reserve(self, size: int) -> None:
        """Take the bytes, waiting for them when they are not free."""
        if self.reserve_nowait(size):
            return
        granted = trio.Event()
        entry = (size, granted)
        self._waiting.append(entry)
        try:
            await granted.wait()
        except BaseException:
            if granted.is_set():
                self.release(size)
            else:
                self._waiting.remove(entry)
                self._grant()
            raise

    def release(self, size: int) -> None:
        """Give bytes back and let the next in line go on."""
        self.used_bytes -= size
        self._grant()

    def _fits(self, size: int) -> bool:
        return self.used_bytes == 0 or self.used_bytes + size <= self.limit_bytes

    def _grant(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, granted = self._waiting.popleft()
            self.used_bytes += size
            granted.set()
