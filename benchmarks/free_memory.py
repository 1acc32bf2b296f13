"""Having memory at hand: what is free in a virtual machine may have been given back to its host.

To use it again then costs several microseconds a page, more than all else that is done with it, and whoever needs it
first pays: a broker that writes to the page cache, or a client for its queue. So as much as a run will need is used
once, and let go, before its clock runs. It stays at hand for some seconds.
"""

import mmap
import os

_SHARE_OF_AVAILABLE = 0.5


def use_free_memory(size_bytes: int) -> None:
    """Have so much memory at hand, but no more than half of what is available."""
    size = min(size_bytes, int(_available_bytes() * _SHARE_OF_AVAILABLE))
    populate = getattr(mmap, "MAP_POPULATE", None)
    if size <= 0 or populate is None:
        return
    mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | populate).close()


def _available_bytes() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0
