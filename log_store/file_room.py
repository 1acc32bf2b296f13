"""Room on the disk for what will be appended to a large file, made before it is needed.

An append goes to the page cache, in microseconds, but the file system notes for each new page that it will need a
block. Whoever writes the file out holds that list while it looks for blocks, and where it has to read from the disk
which ones are free, behind all that is being written, the append waits: 100 ms were seen. Blocks that were set aside
before are not looked for. That may take as long, so it is for a worker thread, and whoever appends should wait for it.

A file gets room for a quarter of what it has, so that many files of which few grow take little of the disk, and none
where the disk has little left. What was not used is given back when the segment takes no more (`LogFile.truncate`).
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.log_store.files import LogFile

_MOST_BYTES = 64 * 1024 * 1024
_SHARE = 4
# Appends that are on their way while there is still room, and are not counted yet.
_UNDER_WAY_BYTES = 1024 * 1024
_FREE_FOR_EACH = 16  # as many bytes must be free for each that is set aside
_NEVER = 1 << 63
_NOT_HERE = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)


def room_wanted(file: LogFile, size: int, segment_bytes: int) -> int:
    """Up to where there should be room, so that so much and more can be appended."""
    ahead = size + _UNDER_WAY_BYTES + min(file.size // _SHARE, _MOST_BYTES)
    return min(file.size + ahead, segment_bytes)


def make_room(file: LogFile, end: int) -> bool:
    """Set blocks aside, unless the disk has few left: appends then go without. Returns whether this file system does
    such things at all."""
    begin = file.size
    if begin >= end:
        return True
    disk = os.statvfs(os.path.dirname(file.path))
    if disk.f_bavail * disk.f_frsize < _FREE_FOR_EACH * (end - begin):
        return True
    return file.fs.reserve(file.fd, begin, end - begin) not in _NOT_HERE


def note_room(file: LogFile, end: int, segment_bytes: int, *, is_useful: bool) -> None:
    """There is room up to `end`, or as good as that. At the end of a segment no more is needed."""
    file.room_end = end
    file.room_mark = end - _UNDER_WAY_BYTES if is_useful and end < segment_bytes else _NEVER
