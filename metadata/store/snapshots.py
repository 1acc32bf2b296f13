"""Snapshots of the metadata log (KIP-630) and the bootstrap checkpoint that `kafka-storage format` leaves.

A snapshot `<end offset>-<epoch>.checkpoint` holds the image made by all records below its end offset: a
control batch with the header, the records of the image, a control batch with the footer, with offsets of
their own that begin at 0. Under a dynamic quorum the kraft.version and the voters stand behind the header.
It is written beside its place and renamed into it, so a snapshot that has its name is whole.
`bootstrap.checkpoint` has the same format; its records are the first ones of a new cluster.
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ottla.log_store.files import OS_FILE_SYSTEM, fsync_path
from ottla.metadata.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from ottla.metadata.errors import MetadataError
from ottla.metadata.records import MetadataRecord
from ottla.metadata.store.batches import DecodedBatch, chunked, decode_batch, metadata_batch
from ottla.metadata.voters_record import VotersRecord
from ottla.wire.dataclass import dataclass
from ottla.wire.errors import KafkaError
from ottla.wire.records.builder import build_batch
from ottla.wire.records.control import ControlType, control_key
from ottla.wire.records.header import iter_batches
from ottla.wire.records.records import Record
from ottla.wire.schema import encode

BOOTSTRAP_FILE_NAME = "bootstrap.checkpoint"
RECORDS_PER_SNAPSHOT_BATCH = 1024

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint\Z")


@dataclass(frozen=True, slots=True, order=True)
class SnapshotId:
    """The offset behind the last record that a snapshot covers, and that record's epoch."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


def list_snapshots(directory: Path) -> list[SnapshotId]:
    """The whole snapshots of a metadata log, oldest first."""
    matches = (_NAME.match(name) for name in os.listdir(directory))
    return sorted(SnapshotId(int(match[1]), int(match[2])) for match in matches if match)


def write_snapshot(
    path: Path,
    records: Iterable[MetadataRecord],
    *,
    epoch: int,
    last_contained_log_ms: int,
    now_ms: int,
    metadata_version: int,
    quorum: Sequence[KRaftVersionRecord | VotersRecord] = (),
) -> None:
    """Write a snapshot file durably; it appears under its name only when it is whole."""
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_contained_log_ms)
    control = [(ControlType.SNAPSHOT_HEADER, encode(header, 0))]
    for message in quorum:
        kind = (
            ControlType.KRAFT_VERSION if isinstance(message, KRaftVersionRecord) else ControlType.KRAFT_VOTERS
        )
        control.append((kind, encode(message, 0)))
    batches = [_control_batch(control, 0, epoch, now_ms)]
    offset = len(control)
    for chunk in chunked(records, RECORDS_PER_SNAPSHOT_BATCH):
        batches.append(
            metadata_batch(
                chunk, base_offset=offset, epoch=epoch, now_ms=now_ms, metadata_version=metadata_version
            )
        )
        offset += len(chunk)
    footer = encode(SnapshotFooterRecord(version=0), 0)
    batches.append(_control_batch([(ControlType.SNAPSHOT_FOOTER, footer)], offset, epoch, now_ms))
    _put_in_place(path, b"".join(batches))


def read_snapshot(path: Path) -> list[DecodedBatch]:
    """All batches of a snapshot; MetadataError if it is damaged."""
    try:
        data = memoryview(path.read_bytes())
        batches = []
        position = 0
        for view in iter_batches(data):
            if not view.crc_matches():
                raise MetadataError(f"{path} is damaged: a batch does not match its CRC.")
            batches.append(decode_batch(view))
            position = view.end
        if position != len(data):
            raise MetadataError(f"{path} is damaged: it ends inside a batch.")
        return batches
    except KafkaError as error:
        raise MetadataError(f"{path} is damaged: {error}.") from error


def _control_batch(
    records: Sequence[tuple[ControlType, bytes]], offset: int, epoch: int, now_ms: int
) -> bytes:
    return build_batch(
        [
            Record(offset + position, now_ms, control_key(kind), value)
            for position, (kind, value) in enumerate(records)
        ],
        base_offset=offset,
        partition_leader_epoch=epoch,
        is_control=True,
    )


def _put_in_place(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    fsync_path(OS_FILE_SYSTEM, str(path.parent))
