"""What the loop wants of a log and is not in memory (see log_store/page_cache) is brought by worker threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ottla.log_store.page_cache import NOWAIT, NotInMemory
from ottla.server.own_threads import OwnThreads
from ottla.wire.chunks import FileSlice
from ottla.wire.errors import KafkaError

# Threads of their own: readers of old records must not keep flushes from theirs.
READING: Final = OwnThreads("reading", 8)
_MOST_AHEAD_BYTES: Final = 8 * 1024 * 1024
_AHEAD_FACTOR: Final = 4
_MOST_FILES: Final = 1000


class ColdReads:
    """One thing to be read, again and again until all it takes is in memory: as long as `only_cached` says so, by what
    is there alone."""

    __slots__ = ("_place", "only_cached")

    def __init__(self) -> None:
        self.only_cached = True
        self._place: tuple[str, int] | None = None

    async def bring(self, missing: NotInMemory) -> None:
        """Have it read. What does not stay in memory, or is never said to be there, is waited for from then on."""
        self.only_cached = missing.place != self._place
        self._place = missing.place
        await have_read(missing.bring)


async def have_read(read: Callable[[], object]) -> None:
    """By a thread, for it to be in memory."""
    await READING.run(_read, read)


def _read(read: Callable[[], object]) -> None:
    with suppress(OSError, KafkaError):  # what is wrong is found by who looks again
        read()


class ReadAhead:
    """How much a client is likely to want: ever more of a file that it reads on and on, as one that catches up does,
    and elsewhere no more than it asks for, since the disk and the processor have work with every page."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: dict[
            int, tuple[int, int]
        ] = {}  # by descriptor: up to where, and how much that was at once

    def bytes_from(self, fd: int, position: int, length: int) -> int:
        """How much is to be read from a position that is not in memory and of which so much is asked for."""
        end, before = self._files.pop(fd, (-1, 0))
        # A slice may end within a batch, with which the next one begins.
        goes_on = end - length <= position <= end
        ahead = max(min(before * _AHEAD_FACTOR, _MOST_AHEAD_BYTES) if goes_on else 0, length)
        if len(self._files) >= _MOST_FILES:
            del self._files[next(iter(self._files))]
        self._files[fd] = position + ahead, ahead
        return ahead


def read_ahead(fd: int, position: int, length: int) -> None:
    """Have the system begin to read; for a worker thread."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, position, length, os.POSIX_FADV_WILLNEED)


def read_cached(chunk: FileSlice) -> bytearray | None:
    """The bytes of a small slice if they are all in memory."""
    data = bytearray(len(chunk))
    try:
        if os.preadv(chunk.fileno(), [data], chunk.position, NOWAIT) == len(data):
            return data
    except OSError:  # not in memory, or no such read: reading it as usual tells what is wrong
        return None
    return None
