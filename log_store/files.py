"""The file system as the log sees it, and the file of a segment.

`FileSystem` is the seam: everything that changes the disk goes through it, so that a test can put in a disk
that is full, that writes short or that dies between two writes. `OsFileSystem` is the real one; its methods
are the functions of `os` themselves, so that the seam costs the hot path nothing.

A `LogFile` is shared between its segment and the slices handed out by reads. Its descriptor is closed when
the last of them lets go of it, so a slice on its way through `os.sendfile` stays readable while the segment
is deleted behind its back. The system frees a deleted file when it is closed, which takes 100 ms for a gigabyte:
that is done by a thread of its own.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from ottla.log_store.page_cache import NotInMemory, have_nothing_read_ahead, is_in_memory, pread_cached
from ottla.native import speed
from ottla.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("ottla.log_store")

Buffer = bytes | bytearray | memoryview

_SMALL_FILE_BYTES: Final = 65_536
_BLOCK_BYTES: Final = 512  # as stat counts them
FIRST_ROOM_BYTES: Final = 4 * 1024 * 1024  # smaller files do without
# Not worth giving back: file systems take some for themselves, and a full segment has less than a batch left.
_LEFT_OVER_BYTES: Final = 1024 * 1024
_LARGE_BATCH_BYTES: Final = 8 * 1024 * 1024
_DOUBTS: Final = 1000  # reads from when something was missing in memory
_QUICKLY_FREED_BYTES: Final = 4 * 1024 * 1024

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

INDEX_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


class FileSystem(Protocol):
    """What the log asks of a disk. Errors are OSError."""

    def open(self, path: str, flags: int, mode: int = ...) -> int: ...
    def close(self, fd: int) -> None: ...
    def pwrite(self, fd: int, data: Buffer, offset: int) -> int: ...
    def pread(self, fd: int, length: int, offset: int) -> bytes: ...
    def pread_cached(self, fd: int, length: int, offset: int) -> bytes: ...
    def is_in_memory(self, fd: int, position: int, length: int) -> bool: ...
    def ftruncate(self, fd: int, length: int) -> None: ...
    def fsync(self, fd: int) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def mkdir(self, path: str) -> None: ...
    def reserve(self, fd: int, begin: int, length: int) -> int: ...


def _reserve(fd: int, begin: int, length: int) -> int:
    """Set blocks aside beyond the end of a file; zero, or the errno of what is in the way."""
    return errno.ENOTSUP if speed is None else int(speed.reserve(fd, begin, length))


class OsFileSystem:
    """The disk of this machine."""

    # Any: the signatures of these functions in typeshed are wider than the seam asks for.
    open: Callable[..., int] = staticmethod(os.open)
    close: Any = staticmethod(os.close)
    pwrite: Any = staticmethod(os.pwrite)
    pread: Any = staticmethod(os.pread)
    pread_cached: Any = staticmethod(pread_cached)
    is_in_memory: Callable[[int, int, int], bool] = staticmethod(is_in_memory)
    ftruncate: Any = staticmethod(os.ftruncate)
    fsync: Any = staticmethod(os.fsync)
    rename: Any = staticmethod(os.replace)
    unlink: Any = staticmethod(os.unlink)
    mkdir: Any = staticmethod(os.mkdir)
    reserve: Any = staticmethod(_reserve)


OS_FILE_SYSTEM: Final[FileSystem] = OsFileSystem()


class LogFile:
    """One open segment file: its descriptor and how many bytes of it are valid."""

    __slots__ = ("_close", "_doubts", "_reads_ahead", "fd", "fs", "path", "room_end", "room_mark", "size")

    def __init__(self, fs: FileSystem, path: str, fd: int, size: int) -> None:
        self.fs = fs
        self.path = path
        self.fd = fd
        self.size = size
        self.room_end = 0  # up to where there is room on the disk, if that was made (see file_room)
        self._reads_ahead = True  # the system does
        self._doubts = 0  # how often it is still to be asked for each page whether it is in memory
        self.room_mark = FIRST_ROOM_BYTES  # from where on more of it should be made before an append
        self._close = fs.close  # kept: at interpreter exit the module may be gone before its objects

    @classmethod
    def create(cls, fs: FileSystem, path: str, *, preallocate_bytes: int = 0) -> LogFile:
        """A new empty file; a preallocated one has its length at once and its size grows into it."""
        fd = fs.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        file = cls(fs, path, fd, 0)
        if preallocate_bytes:
            fs.ftruncate(fd, preallocate_bytes)
        return file

    @classmethod
    def open(cls, fs: FileSystem, path: str) -> LogFile:
        """An existing file, all of whose bytes are taken as valid."""
        fd = fs.open(path, os.O_RDWR | os.O_CLOEXEC, 0o644)
        status = os.fstat(fd)
        file = cls(fs, path, fd, status.st_size)
        left_over = status.st_blocks * _BLOCK_BYTES - file.size
        if _LEFT_OVER_BYTES < left_over < file.size // 2 + _LARGE_BATCH_BYTES:  # it was not closed
            file.room_end = file.size + left_over
        return file

    def fileno(self) -> int:
        return self.fd

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` valid bytes from `position`."""
        return self.fs.pread(self.fd, max(0, min(length, self.size - position)), position)

    def read_cached(self, position: int, length: int) -> bytes:
        """The same without waiting for the disk. Raises NotInMemory."""
        length = max(0, min(length, self.size - position))
        if self._reads_ahead:
            have_nothing_read_ahead(self.fd)
            self._reads_ahead = False
        if not self._doubts:
            data: bytes = self.fs.pread_cached(self.fd, length, position)
            if len(data) == length:
                return data
        elif self.fs.is_in_memory(self.fd, position, length):
            self._doubts -= 1
            return self.fs.pread(self.fd, length, position)
        self._doubts = _DOUBTS
        raise NotInMemory((self.path, position), partial(self.read, position, length))

    def append(self, data: Buffer) -> None:
        """Write all of `data` after the valid bytes, or nothing of it: what was written is cut off again."""
        length = len(data)
        position = self.size
        try:
            written = self.fs.pwrite(self.fd, data, position)
            while written < length:
                written += self.fs.pwrite(self.fd, memoryview(data)[written:], position + written)
        except OSError:
            self.fs.ftruncate(self.fd, position)
            raise
        self.size = position + length

    def truncate(self, size: int) -> None:
        """Cut to `size` valid bytes, and cut off what was preallocated. A file that has this length and not much room
        beyond stays as it is: retention may go by the time of its last change."""
        if self.room_end > size + _LEFT_OVER_BYTES or os.fstat(self.fd).st_size != size:
            self.fs.ftruncate(self.fd, size)
            self.room_end, self.room_mark = 0, FIRST_ROOM_BYTES
        self.size = size

    def fsync(self) -> None:
        if self.fd < 0:  # os.fsync says ValueError
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self.fs.fsync(self.fd)

    def __del__(self) -> None:
        fd, self.fd = getattr(self, "fd", -1), -1
        if fd >= 0:
            _close_aside(self._close, fd, self.size)

    def __repr__(self) -> str:
        return f"LogFile({self.path!r}, size={self.size})"


def _close_aside(close: Callable[[int], None], fd: int, size: int) -> None:
    """Close a file, beside whatever goes on if it is large and this frees it."""
    # An interpreter that ends lets no thread begin, and whoever starts one then waits for it forever.
    if size > _QUICKLY_FREED_BYTES and not sys.is_finalizing() and _is_deleted(fd):
        try:
            threading.Thread(target=close, args=(fd,), name="close", daemon=True).start()
            return
        except RuntimeError:  # no more threads
            pass
    close(fd)


def _is_deleted(fd: int) -> bool:
    try:
        return os.fstat(fd).st_nlink == 0
    except OSError:
        return False


def closed_log_file(file: LogFile) -> LogFile:
    """What a segment holds after it let its file go: every use of it fails with EBADF."""
    return LogFile(file.fs, file.path, -1, file.size)


def write_file(fs: FileSystem, path: str, data: bytes, *, sync: bool) -> None:
    """Replace a small file in one step: write `path`.tmp, then rename it over `path`."""
    temporary = path + ".tmp"
    fd = fs.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_fully(fs, fd, data, 0)
        if sync:
            fs.fsync(fd)
    finally:
        fs.close(fd)
    fs.rename(temporary, path)
    if sync:
        fsync_path(fs, os.path.dirname(path) or ".")


def write_fully(fs: FileSystem, fd: int, data: Buffer, position: int) -> None:
    """pwrite until everything is written."""
    written = fs.pwrite(fd, data, position)
    while written < len(data):
        written += fs.pwrite(fd, memoryview(data)[written:], position + written)


def read_small_file(path: str) -> bytes:
    """All bytes of a file, in fewer steps than `open` takes: a start reads several for each partition."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, _SMALL_FILE_BYTES)
        while len(data) % _SMALL_FILE_BYTES == 0 and (more := os.read(fd, _SMALL_FILE_BYTES)):
            data += more
        return data
    finally:
        os.close(fd)


def fsync_path(fs: FileSystem, path: str) -> None:
    """fsync a file or a directory by name; one that is gone needs no flushing."""
    try:
        fd = fs.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        fs.fsync(fd)
    finally:
        fs.close(fd)


def unlink_if_there(fs: FileSystem, path: str) -> bool:
    try:
        fs.unlink(path)
    except FileNotFoundError:
        return False
    return True


def offset_name(offset: int) -> str:
    """The name part of a segment's files: its base offset in 20 digits, so that names sort as numbers."""
    return f"{offset:020d}"


def offset_of_name(name: str) -> int:
    """The base offset in a file name; ValueError if it does not begin with one."""
    return int(name[: name.index(".")])


def storage_error(partition: str, doing: str, error: OSError) -> KafkaError:
    """What the disk refused, as clients learn it; they try again."""
    logger.error("storage error partition=%s doing=%s error=%s", partition, doing, error)
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Disk error in {partition}: {error.strerror}.")
