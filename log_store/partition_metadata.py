"""`partition.metadata`: which topic the directory of a partition belongs to (KIP-516).

    version: 0
    topic_id: 8QPyh_nRRXaGPlLaBUlyIg

Two lines, the second without a newline; the id is 16 bytes as unpadded url-safe base64. A topic that is
deleted and made again has another id, so old data is never taken for the new topic's.
"""

from __future__ import annotations

from typing import Final

from ottla.log_store.files import FileSystem, read_small_file, write_file
from ottla.wire.uuids import ZERO_UUID, Uuid, format_uuid, parse_uuid

FILE_NAME: Final = "partition.metadata"
VERSION: Final = 0


class CorruptPartitionMetadata(Exception):
    """A partition.metadata file that names no topic."""


def write_partition_metadata(fs: FileSystem, path: str, topic_id: Uuid, *, sync: bool) -> None:
    text = f"version: {VERSION}\ntopic_id: {format_uuid(topic_id)}"
    write_file(fs, path, text.encode(), sync=sync)


def read_partition_metadata(path: str) -> Uuid | None:
    """The topic id, or None if there is no file."""
    try:
        fields = dict(line.split(": ", 1) for line in read_small_file(path).decode().splitlines())
        if int(fields["version"]) < VERSION:
            raise CorruptPartitionMetadata(f"{path} has version {fields['version']}")
        topic_id = parse_uuid(fields["topic_id"].strip())
    except FileNotFoundError:
        return None
    except (KeyError, ValueError) as error:
        raise CorruptPartitionMetadata(f"{path} is malformed") from error
    if topic_id == ZERO_UUID:
        raise CorruptPartitionMetadata(f"{path} has the zero id")
    return topic_id
