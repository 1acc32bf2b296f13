"""Is a stretch of a file in memory, so that reading or sending it does not wait for the disk?

The loop serves everybody, so it must not wait for what was written long ago. Index entries and batch headers are
looked for in the page cache only; what is not there is brought by a worker thread, after which the loop looks again. An
index is searched through a map of its file, and a page that is missing there would keep even a thread's interpreter
from everybody, so all of an index is brought before it is searched.

There are two ways to ask. To read without blocking (RWF_NOWAIT) costs a microsecond, but where something is missing
the system begins to read it, and may wait for the disk to say where it is. What is compiled asks for the state of every
page and starts nothing, for several microseconds and twenty more for each megabyte. So the first way is taken as long
as nothing was missing of late. Where a system or file system has no such read, everything is taken to be in memory.

The system also reads ahead by itself, megabytes at a time, for whom it takes to read on and on. It is told not to: the
loop would find memory for all these pages. Threads say how much is to be read (see server/cold_reads).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ottla.native import speed

_PROBE_EVERY_BYTES: Final = 512 * 1024
NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
_probe_buffer: Final = [bytearray(1)]


class NotInMemory(Exception):
    """What is needed has to be read from the disk first."""

    def __init__(self, place: tuple[str, int], bring: Callable[[], object]) -> None:
        """`bring` reads it, for a worker thread; an OSError of it is to be met again by who looks again."""
        super().__init__(*place)
        self.place = place
        self.bring = bring


def probe(fd: int, position: int, length: int) -> bool:
    """Whether the stretch seems to be in memory, going by its first and last byte and some between them."""
    if not NOWAIT or length <= 0:
        return True
    try:
        for each in range(position, position + length - 1, _PROBE_EVERY_BYTES):
            os.preadv(fd, _probe_buffer, each, NOWAIT)
        os.preadv(fd, _probe_buffer, position + length - 1, NOWAIT)
    except BlockingIOError:
        return False
    except OSError:  # it is for the reading or sending to find out what is wrong
        return True
    return True


def have_nothing_read_ahead(fd: int) -> None:
    """Of what is read by this descriptor."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):  # it is only advice
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)


def pread_cached(fd: int, length: int, offset: int) -> bytes:
    """What is in memory of a stretch of a file, as far as it is from its beginning on."""
    if not NOWAIT:
        return os.pread(fd, length, offset)
    data = bytearray(length)
    try:
        read = os.preadv(fd, [data], offset, NOWAIT)
    except BlockingIOError:
        return b""
    except OSError:  # no such read, or it fails for others, too, and is told by this one
        return os.pread(fd, length, offset)
    return bytes(data) if read == length else bytes(data[:read])


is_in_memory: Callable[[int, int, int], bool] = probe if speed is None else speed.is_in_memory
