"""A disk of which only that is in memory what was read since it forgot everything."""

from __future__ import annotations

import os
import threading

from ottla.log_store.files import OsFileSystem

PAGE_BYTES = 4096


class ForgetfulDisk(OsFileSystem):
    """It knows which threads had to wait for it. One that is `hopeless` never says that anything is in memory."""

    def __init__(self) -> None:
        self.waited: list[threading.Thread] = []
        self.waited_bytes = 0
        self.hopeless = False
        self._in_memory: set[tuple[int, int]] | None = None  # inode and page; None before it has forgotten

    def forget(self) -> None:
        """From now on nothing is in memory."""
        self._in_memory = set()
        self.waited.clear()
        self.waited_bytes = 0

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        if not self.is_in_memory(fd, offset, length):
            self.waited.append(threading.current_thread())
            self.waited_bytes += length
        if self._in_memory is not None:
            self._in_memory |= _pages(fd, offset, length)
        return os.pread(fd, length, offset)

    def pread_cached(self, fd: int, length: int, offset: int) -> bytes:
        return os.pread(fd, length, offset) if self.is_in_memory(fd, offset, length) else b""

    def is_in_memory(self, fd: int, position: int, length: int) -> bool:
        if self._in_memory is None:
            return True
        return not self.hopeless and _pages(fd, position, length) <= self._in_memory


def _pages(fd: int, position: int, length: int) -> set[tuple[int, int]]:
    inode = os.fstat(fd).st_ino
    return {(inode, page) for page in range(position // PAGE_BYTES, -(-(position + length) // PAGE_BYTES))}
