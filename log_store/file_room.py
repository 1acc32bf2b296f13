"""Room on the disk for what will be appended to a large file, made before it is needed.

An append goes to the page cache, in microseconds, but the file system notes for each new page that it will need a
block. Whoever writes the file out holds that list while it looks for blocks, and where it has to read from the disk
which ones are free, behind all that is being written, the append waits: 100 ms were seen. Blocks that were set aside
before are not looked for. That may take as long, so it is for a worker thread, and whoever appends should wait for it.

A file gets room for a quarter of what it has, so that many files of which few grow take little of the disk. What was
not used is given back when the segment takes no more (`LogFile.truncate`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.native import speed

if TYPE_CHECKING:
    from ottla.log_store.files import LogFile

_MOST_BYTES = 64 * 1024 * 1024
_SHARE = 4
# Appends that are on their way while there is still room, and are not counted yet.
_UNDER_WAY_BYTES = 1024 * 1024
_NEVER = 1 << 63


def room_wanted(file: LogFile, size: int, segment_bytes: int) -> int:
    """Up to where there should be room, so that so much and more can be appended."""
    ahead = size + _UNDER_WAY_BYTES + min(file.size // _SHARE, _MOST_BYTES)
    return min(file.size + ahead, segment_bytes)


def make_room(file: LogFile, end: int) -> None:
    """Set blocks aside. Where the disk has none, or does not do this, appends go without, and meet what there is."""
    begin = file.size
    if speed is not None and begin < end:
        speed.reserve(file.fd, begin, end - begin)


def note_room(file: LogFile, end: int, segment_bytes: int) -> None:
    """There is room up to `end`. At the end of a segment no more is needed."""
    file.room_end = end
    file.room_mark = _NEVER if end >= segment_bytes or speed is None else end - _UNDER_WAY_BYTES
