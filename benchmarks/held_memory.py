"""Holding memory at hand: what is free in a virtual machine may be given back to its host.

To use it again then costs several microseconds a page, ten times as much as writing to it, and whoever needs it first
pays: a broker for its page cache, or a client for its queue. What is given back are free blocks of two megabytes. So
nearly all free memory is used once when a run begins, and then let go but for a page of each block, until the run is
over: no block is ever free as a whole. The kernel would move such pages together, which makes whole blocks again; it
leaves those alone that are in a pipe.
"""

import ctypes
import fcntl
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

BLOCK_BYTES = 2 << 20
LEFT_ALONE_BYTES = 1 << 29  # for others while it is used
PAGE_BYTES = mmap.PAGESIZE
_PIPE_BYTES = 1 << 20  # the most without privileges


class _Piece(ctypes.Structure):
    """An `iovec`."""

    _fields_ = (("address", ctypes.c_void_p), ("length", ctypes.c_size_t))


@contextmanager
def held_memory(most_bytes: int | None = None) -> Iterator[int]:
    """Have memory at hand inside of this, all that is free or so much: how much it is."""
    size = available_bytes() - LEFT_ALONE_BYTES
    if most_bytes is not None:
        size = min(size, most_bytes)
    size -= size % BLOCK_BYTES
    if size <= 0:
        yield 0
        return
    with ExitStack() as stack:
        memory = stack.enter_context(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        memory.madvise(mmap.MADV_NOHUGEPAGE)  # a huge page is not let go in part
        memory.madvise(mmap.MADV_DONTFORK)
        for page in range(0, size, PAGE_BYTES):
            memory[page] = 1
        _pin(memory, range(0, size, BLOCK_BYTES), stack)
        for block in range(0, size, BLOCK_BYTES):
            memory.madvise(mmap.MADV_DONTNEED, block + PAGE_BYTES, BLOCK_BYTES - PAGE_BYTES)
        yield size


def _pin(memory: mmap.mmap, pages: Sequence[int], stack: ExitStack) -> None:
    """Put the pages at these positions into pipes that nobody reads, which are closed with the stack."""
    start = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(start)
    del start  # else the memory could not be let go
    libc = ctypes.CDLL(None, use_errno=True)
    while pages:
        ends = os.pipe()
        for end in ends:
            stack.callback(os.close, end)
        os.set_blocking(ends[1], False)
        try:
            room = fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, _PIPE_BYTES) // PAGE_BYTES
        except PermissionError:  # a user may have only so much in pipes; the rest may be moved
            return
        some, pages = pages[:room], pages[room:]
        pieces = (_Piece * len(some))(*(_Piece(address + page, PAGE_BYTES) for page in some))
        if libc.vmsplice(ends[1], pieces, len(some), 0) != len(some) * PAGE_BYTES:
            error = ctypes.get_errno()
            raise OSError(error, f"memory cannot be held in a pipe: {os.strerror(error)}")


def available_bytes() -> int:
    """What is free; nothing where the system does not tell."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * PAGE_BYTES
    except (ValueError, OSError):
        return 0
