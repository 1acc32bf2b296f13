"""A whole log directory: every partition in it, and the checkpoints that speak of them."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from collections.abc import Iterable

from ottla.log_store.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    CorruptCheckpoint,
    TopicPartition,
    read_offsets,
)
from ottla.log_store.directory import LOCK_FILE, is_locked_here
from ottla.log_store.files import LOG_SUFFIX
from ottla.log_store.naming import is_deleted_directory, parse_partition_directory
from ottla.log_store.verify.finding import Finding, Findings
from ottla.log_store.verify.partition import PartitionCheck, VerifyOptions

CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)

# struct flock of fcntl(2); the BSDs and macOS have its fields in another order.
_FLOCK_IS_LINUX = sys.platform == "linux"
_FLOCK = struct.Struct("hhqqi4x" if _FLOCK_IS_LINUX else "qqihh")


class DirectoryCheck:
    """One of log.dirs; after `run` its partitions are known."""

    def __init__(self, path: str, options: VerifyOptions) -> None:
        self.path = path
        self.partitions: dict[TopicPartition, PartitionCheck] = {}
        self._options = options

    def run(self) -> Findings:
        """All findings of the directory."""
        offsets = {}
        for name in CHECKPOINTS:
            try:
                offsets[name] = read_offsets(os.path.join(self.path, name))
            except CorruptCheckpoint as error:
                yield Finding(os.path.join(self.path, name), f"the checkpoint cannot be read: {error}")
        yield from self._check_names()
        for name in partition_names(self.path):
            check = PartitionCheck(os.path.join(self.path, name), self._options)
            self.partitions[parse_partition_directory(name)] = check
            try:
                yield from check.run()
            except FileNotFoundError:  # the topic was deleted meanwhile
                if not self._options.in_use:
                    raise
                check.is_complete = False
        for name, known in offsets.items():
            yield from self._check_offsets(name, known)
        yield from self._check_starts(offsets)

    def _check_offsets(self, name: str, offsets: dict[TopicPartition, int]) -> Findings:
        path = os.path.join(self.path, name)
        for key, offset in offsets.items():
            partition = self.partitions.get(key)
            if partition is None:
                if not self._options.in_use:
                    yield Finding(path, f"{key[0]}-{key[1]} is named, but is not here")
            elif partition.is_complete and not 0 <= offset <= partition.end_offset:
                problem = f"{key[0]}-{key[1]} has {offset}, but the log ends at {partition.end_offset}"
                yield Finding(path, problem, offset=offset)

    def _check_starts(self, offsets: dict[str, dict[TopicPartition, int]]) -> Findings:
        starts = offsets.get(LOG_START_OFFSET_CHECKPOINT, {})
        marks = offsets.get(HIGH_WATERMARK_CHECKPOINT, {})
        for key in starts.keys() & marks.keys():
            known = self.partitions.get(key)
            if known is None or starts[key] > known.end_offset or self._options.in_use:
                continue
            if marks[key] < starts[key]:
                problem = f"{key[0]}-{key[1]} has {marks[key]}, below the log start {starts[key]}"
                yield Finding(os.path.join(self.path, HIGH_WATERMARK_CHECKPOINT), problem, offset=marks[key])

    def _check_names(self) -> Findings:
        if self._options.in_use:
            return
        for name in sorted(os.listdir(self.path)):
            path = os.path.join(self.path, name)
            if is_deleted_directory(name):
                yield Finding(path, "left over: a deleted partition that waits for its removal")
            elif name.endswith("-stray") and os.path.isdir(path):
                yield Finding(path, "left over: a partition of no known topic")
            elif name.endswith(".tmp"):
                yield Finding(path, "left over: a small file that was being written")


def partition_names(path: str) -> list[str]:
    """The directories of partitions in a log directory, the metadata log among them."""
    names = []
    for name in sorted(os.listdir(path)):
        try:
            parse_partition_directory(name)
        except ValueError:
            continue
        if os.path.isdir(os.path.join(path, name)):
            names.append(name)
    return names


def is_partition_directory(path: str) -> bool:
    """Whether a directory holds segments itself."""
    return any(name.endswith(LOG_SUFFIX) for name in os.listdir(path))


def segment_bytes(directories: Iterable[str]) -> int:
    """How many bytes of segments there are to read, for a progress bar."""
    total = 0
    for directory in directories:
        for entry in os.scandir(directory):
            if entry.name.endswith(LOG_SUFFIX):
                total += entry.stat().st_size
    return total


def is_in_use(path: str) -> bool:
    """Whether a broker holds the lock of a log directory; the lock is asked about, not taken."""
    lock_path = os.path.join(path, LOCK_FILE)
    if is_locked_here(lock_path):
        return True
    try:
        fd = os.open(lock_path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        wanted = (
            (fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            if _FLOCK_IS_LINUX
            else (0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
        )
        answer = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, _FLOCK.pack(*wanted)))
    finally:
        os.close(fd)
    kind: int = answer[0 if _FLOCK_IS_LINUX else 3]
    return kind != fcntl.F_UNLCK
