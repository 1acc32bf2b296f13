"""Room on the disk is made in worker threads before appends need it: see log_store/file_room."""

from __future__ import annotations

from contextlib import suppress
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
    """Before so much is appended to the log. All who append to it wait meanwhile: the file is the thread's."""
    making = _making_of_this_run()
    while True:
        file = log.segments[-1].file
        made = making.get(file)
        if made is not None:
            await made.wait()
        elif file.size + size > file.room_mark:
            made = making[file] = trio.Event()
            try:
                await _make(log, file, size)
            finally:
                del making[file]
                made.set()
            return
        else:
            return


async def _make(log: Log, file: LogFile, size: int) -> None:
    mark, file.room_mark = file.room_mark, 0
    try:
        end = room_wanted(file, size, log.segment_bytes)
        is_useful = await _THREADS.run(make_room, file, end)
    except BaseException:
        file.room_mark = mark
        raise
    note_room(file, end, log.segment_bytes, is_useful=is_useful)
    if log.segments[-1].file is not file:  # it was rolled, or deleted, and takes no more
        with suppress(OSError):
            file.truncate(file.size)


def _making_of_this_run() -> dict[LogFile, trio.Event]:
    try:
        return _making.get()
    except LookupError:
        making: dict[LogFile, trio.Event] = {}
        _making.set(making)
        return making
