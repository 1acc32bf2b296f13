"""Having memory at hand: what is free in a virtual machine may have been given back to its host.

To use it again then costs several microseconds a page, more than all else that is done with it, and whoever needs it
first pays: a broker that writes to the page cache, or a client for its queue. So as much as a run will need is used
once, and let go, before its clock runs. It stays at hand for some seconds.

It is used as the page cache of a file without content. What was the memory of a process, or of a file that lies in
memory only, comes behind all else that is free when it is let go, and the next who needs some gets other memory.
"""

import os
import tempfile

_SHARE_OF_AVAILABLE = 0.5
_PIECE_BYTES = 1 << 20


def use_free_memory(size_bytes: int) -> None:
    """Have so much memory at hand, but no more than half of what is available."""
    size = min(size_bytes, int(_available_bytes() * _SHARE_OF_AVAILABLE))
    if size <= 0:
        return
    piece = bytearray(_PIECE_BYTES)
    with tempfile.TemporaryFile(buffering=0) as file:
        file.truncate(size)
        while file.readinto(piece):
            pass


def _available_bytes() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0
