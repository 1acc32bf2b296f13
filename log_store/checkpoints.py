"""Checkpoint files: small texts that are replaced as a whole.

    version, always 0          0
    number of entries          2
    one entry a line           orders 0 1500
                               orders 1 1498

Fields are parted by one space, lines end with a newline. In a log directory lie four of these, by topic and
partition: `recovery-point-offset-checkpoint` (everything below is known to be on the disk),
`log-start-offset-checkpoint` (only partitions that begin inside a segment), `replication-offset-checkpoint`
(high watermarks) and `cleaner-offset-checkpoint` (how far compaction came). The leader epochs of a partition
are kept the same way (see leader_epochs).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ottla.log_store.files import FileSystem, read_small_file, write_file

RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"

VERSION: Final = 0

TopicPartition = tuple[str, int]


class CorruptCheckpoint(Exception):
    """A checkpoint file that says something impossible."""


def write_checkpoint(fs: FileSystem, path: str, lines: Iterable[str], *, sync: bool = True) -> None:
    """Replace the checkpoint at `path`."""
    write_file(fs, path, checkpoint_text(list(lines)).encode(), sync=sync)


def checkpoint_text(entries: Sequence[str]) -> str:
    """What a checkpoint with these lines has in its file."""
    return "\n".join([str(VERSION), str(len(entries)), *entries]) + "\n"


def read_checkpoint(path: str) -> list[list[str]]:
    """The entries of the checkpoint at `path`, split into fields; none if it is absent or empty."""
    try:
        lines = read_small_file(path).decode().splitlines()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path} is not text") from error
    if len(lines) < 2:
        if lines and lines[0].strip() != str(VERSION):
            raise CorruptCheckpoint(f"{path} has version {lines[0]!r}")
        return []
    if lines[0].strip() != str(VERSION):
        raise CorruptCheckpoint(f"{path} has version {lines[0]!r}")
    entries = [line.split() for line in lines[2:]]
    if lines[1].strip() != str(len(entries)):
        raise CorruptCheckpoint(f"{path} promises {lines[1]!r} entries and has {len(entries)}")
    return entries


def write_offsets(fs: FileSystem, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace an offset checkpoint."""
    items = list(offsets.items())
    write_checkpoint(fs, path, (f"{topic} {partition} {offset}" for (topic, partition), offset in items))


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """The offsets by topic and partition of an offset checkpoint."""
    try:
        return {(topic, int(partition)): int(offset) for topic, partition, offset in read_checkpoint(path)}
    except ValueError as error:
        raise CorruptCheckpoint(f"{path}: {error}") from error
