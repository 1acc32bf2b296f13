"""Holding memory at hand: what is free in a virtual machine may be given back to its host.

To use it again then costs several microseconds a page, ten times as much as writing to it, and whoever needs it first
pays: a broker for its page cache, or a client for its queue. What is given back are free blocks of two megabytes. So
nearly all free memory is used once when a run begins, and then let go but for a page of each block, until the run is
over: no block is ever free as a whole. The rest of a block stays in two pieces at least, since large writes take large
pieces first.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

BLOCK_BYTES = 2 << 20
LEFT_ALONE_BYTES = 1 << 30  # for others while it is used
PAGE_BYTES = mmap.PAGESIZE


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
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)  # a huge page is not let go in part
        memory.madvise(mmap.MADV_DONTFORK)
        for page in range(0, size, PAGE_BYTES):
            memory[page] = 1
        for block in range(0, size, BLOCK_BYTES):
            memory.madvise(mmap.MADV_DONTNEED, block + PAGE_BYTES, BLOCK_BYTES - PAGE_BYTES)
        yield size


def available_bytes() -> int:
    """What is free; nothing where the system does not tell."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * PAGE_BYTES
    except (ValueError, OSError):
        return 0
