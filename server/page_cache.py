"""Is a stretch of a file in memory, so that sending it does not wait for the disk?

A consumer that reads what was written long ago would otherwise have the whole broker wait with it. The system answers
by a read that must not block (RWF_NOWAIT): one byte here and there costs a microsecond each, next to nothing beside the
sending. Where a system or file system has no such read, everything is taken to be in memory.
"""

import os
from typing import Final

from ottla.wire.chunks import FileSlice

_PROBE_EVERY_BYTES: Final = 512 * 1024
_READ_AHEAD_BYTES: Final = 8 * 1024 * 1024
_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
_probe_buffer: Final = [bytearray(1)]


def is_cached(fd: int, position: int, length: int) -> bool:
    """Whether the stretch seems to be in memory, going by its first and last byte and some between them."""
    if not _NOWAIT:
        return True
    try:
        for probe in range(position, position + length - 1, _PROBE_EVERY_BYTES):
            os.preadv(fd, _probe_buffer, probe, _NOWAIT)
        os.preadv(fd, _probe_buffer, position + length - 1, _NOWAIT)
    except BlockingIOError:
        return False
    except OSError:  # it is for the sending to find out what is wrong
        return True
    return True


def read_ahead(fd: int, position: int) -> None:
    """Have the system begin to read what a consumer that catches up will want now and next; for a worker thread."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, position, _READ_AHEAD_BYTES, os.POSIX_FADV_WILLNEED)


def read_cached(chunk: FileSlice) -> bytearray | None:
    """The bytes of a small slice if they are all in memory."""
    data = bytearray(len(chunk))
    try:
        if os.preadv(chunk.fileno(), [data], chunk.position, _NOWAIT) == len(data):
            return data
    except OSError:  # not in memory, or no such read: reading it as usual tells what is wrong
        return None
    return None
