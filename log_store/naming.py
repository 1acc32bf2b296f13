"""Names of directories: `topic-partition`, and with a suffix what becomes of them.

    orders-0                                                   a partition
    orders-0.6c0a5a9b2a3d4e7f8091a2b3c4d5e6f7-delete           being deleted
    orders-0.6c0a5a9b2a3d4e7f8091a2b3c4d5e6f7-future           being moved between disks
    orders-0.6c0a5a9b2a3d4e7f8091a2b3c4d5e6f7-stray            belongs to no topic of the cluster

A long topic name is cut so that the name of a deleted directory keeps within 255 characters.
"""

from __future__ import annotations

import os
import re
from typing import Final

DELETE_SUFFIX: Final = "-delete"
FUTURE_SUFFIX: Final = "-future"
STRAY_SUFFIX: Final = "-stray"
LONGEST_NAME: Final = 255

_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>\d{1,10})\Z")
_SUFFIXED = re.compile(r"\S+-\d+\.\S+(-delete|-future|-stray)\Z")


def partition_directory(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_partition_directory(name: str) -> tuple[str, int]:
    """Topic and partition of a directory name; ValueError if it is not one."""
    if _SUFFIXED.match(name):
        raise ValueError(f"{name!r} is not the directory of a live partition")
    match = _PARTITION.match(name)
    if match is None:
        raise ValueError(f"{name!r} is not of the form topic-partition")
    return match["topic"], int(match["partition"])


def is_deleted_directory(name: str) -> bool:
    return name.endswith(DELETE_SUFFIX) and _SUFFIXED.match(name) is not None


def deleted_directory(topic: str, partition: int) -> str:
    """A name that no other deleted directory has."""
    return _suffixed(topic, partition, DELETE_SUFFIX)


def stray_directory(topic: str, partition: int) -> str:
    return _suffixed(topic, partition, STRAY_SUFFIX)


def _suffixed(topic: str, partition: int, suffix: str) -> str:
    tail = f"-{partition}.{os.urandom(16).hex()}{suffix}"
    return topic[: LONGEST_NAME - len(tail)] + tail
