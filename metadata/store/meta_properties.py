"""`meta.properties`: which cluster and node a log directory belongs to, and the directory's own id (KIP-858).

    #
    #Mon Nov 16 07:30:20 UTC 2026
    node.id=1
    directory.id=z-h4BsuVvIaC_gF5FxAELQ
    version=1
    cluster.id=4L6g3nShT-eMCtK--X86sw

Every log directory has one. Cluster and node must be the same in all of them, or the directories were mixed
up; then nothing is touched.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ottla.config.properties import parse_properties_file
from ottla.log_store.files import OS_FILE_SYSTEM, write_file
from ottla.metadata.errors import MetadataError
from ottla.metadata.ids import usable_uuid
from ottla.wire.dataclass import dataclass
from ottla.wire.uuids import Uuid, format_uuid, parse_uuid

FILE_NAME = "meta.properties"
VERSION = 1


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The contents of one directory's file."""

    cluster_id: str
    node_id: int
    directory_id: Uuid


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this node is, as its log directories tell it."""

    cluster_id: str
    node_id: int
    directory_ids: dict[Path, Uuid]
    unmarked: tuple[Path, ...]
    """The directories without a file yet."""


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """The file of `directory`, None if it has none; MetadataError if it cannot be one of Kafka 4's."""
    path = directory / FILE_NAME
    try:
        values = parse_properties_file(path.read_text(encoding="iso-8859-1"))
    except FileNotFoundError:
        return None
    version = values.get("version", "").strip()
    if version != str(VERSION):
        raise MetadataError(f"{path} has version {version!r}, but only version {VERSION} is known.")
    cluster_id = values.get("cluster.id", "").strip()
    if not cluster_id:
        raise MetadataError(f"{path} has no cluster.id.")
    try:
        node_id = int(values.get("node.id", values.get("broker.id", "")))
    except ValueError:
        raise MetadataError(f"{path} has no node.id that is a number.") from None
    try:
        directory_id = parse_uuid(values.get("directory.id", ""))
    except ValueError:
        raise MetadataError(f"{path} has no directory.id that is an id.") from None
    return MetaProperties(cluster_id, node_id, directory_id)


def write_meta_properties(directory: Path, properties: MetaProperties, now_ms: int) -> None:
    """Put the file in place at once and durably."""
    moment = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(now_ms // 1000))
    text = (
        f"#\n#{moment}\n"
        f"node.id={properties.node_id}\n"
        f"directory.id={format_uuid(properties.directory_id)}\n"
        f"version={VERSION}\n"
        f"cluster.id={properties.cluster_id}\n"
    )
    write_file(OS_FILE_SYSTEM, str(directory / FILE_NAME), text.encode("iso-8859-1"), sync=True)


def identify(
    directories: Sequence[Path],
    node_id: int | None,
    cluster_id: str | None,
    new_uuid: Callable[[], Uuid],
) -> Identity:
    """Who we are: from the directories if any of them knows, else as configured, else made now.

    Reads only. MetadataError when two directories, or a directory and the configuration, disagree.
    """
    found = {directory: read_meta_properties(directory) for directory in directories}
    marked = {directory: properties for directory, properties in found.items() if properties is not None}
    for directory, properties in marked.items():
        if cluster_id is not None and properties.cluster_id != cluster_id:
            raise MetadataError(
                f"{directory} belongs to cluster {properties.cluster_id}, not to cluster {cluster_id}."
            )
        if node_id is not None and properties.node_id != node_id:
            raise MetadataError(
                f"{directory} belongs to node.id {properties.node_id}, not to node.id {node_id}."
            )
        cluster_id, node_id = properties.cluster_id, properties.node_id
    directory_ids: dict[Path, Uuid] = {}
    for directory in directories:
        known = marked.get(directory)
        directory_id = usable_uuid(new_uuid) if known is None else known.directory_id
        if directory_id in directory_ids.values():
            raise MetadataError(
                f"{directory} has the directory.id {format_uuid(directory_id)} of another log directory."
            )
        directory_ids[directory] = directory_id
    return Identity(
        cluster_id=format_uuid(usable_uuid(new_uuid)) if cluster_id is None else cluster_id,
        node_id=1 if node_id is None else node_id,
        directory_ids=directory_ids,
        unmarked=tuple(directory for directory in directories if directory not in marked),
    )
