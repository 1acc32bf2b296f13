"""Room on the disk is made in worker threads before large appends need it: see log_store/file_room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ottla.log_store.file_room import make_room, note_room, room_wanted
from ottla.server.own_threads import OwnThreads

if TYPE_CHECKING:
    from ottla.log_store.files import LogFile
    from ottla.log_store.log import Log

_THREADS = OwnThreads("room", 4)  # one disk may keep its own waiting
_making: trio.lowlevel.RunVar[dict[LogFile, trio.Event]] = trio.lowlevel.RunVar("room_ahead")


async def make_room_ahead(log: Log, size: int) -> None:
    """Before so much is appended to the log. Several who append to it wait together."""
    making = _making_of_this_run()
    file = log.segments[-1].file
    made = making.get(file)
    if made is not None:
        await made.wait()
        return
    made = making[file] = trio.Event()
    try:
        end = room_wanted(file, size, log.segment_bytes)
        await _THREADS.run(make_room, file, end)
        note_room(file, end, log.segment_bytes)
    finally:
        del making[file]
        made.set()


def _making_of_this_run() -> dict[LogFile, trio.Event]:
    try:
        return _making.get()
    except LookupError:
        making: dict[LogFile, trio.Event] = {}
        _making.set(making)
        return making
