"""The metadata log and its snapshots for people: records decoded, topic ids folded, damage found. Reads only.

Secrets stay secret unless they are asked for: SCRAM credentials, and broker configs whose value is never shown.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.config.broker import BROKER_CONFIGS
from ottla.config.resources import ResourceType
from ottla.log_store.files import LOG_SUFFIX
from ottla.log_store.inspect.batch_file import BatchFile
from ottla.log_store.inspect.rows import DecodeRecord, Row, control_row
from ottla.log_store.verify.finding import Finding, Findings
from ottla.metadata.control_records import KRaftVersionRecord, LeaderChangeMessage, SnapshotHeaderRecord
from ottla.metadata.errors import MetadataError
from ottla.metadata.records import ConfigRecord, RemoveTopicRecord, TopicRecord
from ottla.metadata.records.frame import decode_record
from ottla.metadata.store.batches import DecodedBatch, decode_batch
from ottla.metadata.store.meta_properties import read_meta_properties
from ottla.metadata.store.quorum_state import read_quorum_state
from ottla.metadata.store.snapshots import list_snapshots, read_snapshot
from ottla.metadata.voters_record import VotersRecord
from ottla.wire.errors import KafkaError, MalformedMessage
from ottla.wire.records.control import ControlType
from ottla.wire.records.header import BatchView
from ottla.wire.records.records import Record
from ottla.wire.schema import decode
from ottla.wire.uuids import Uuid, format_uuid

HIDDEN = "[hidden]"
_UUID_BYTES = 16
_CONTROL_MESSAGES: dict[str, type[Any]] = {
    ControlType.LEADER_CHANGE.name: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER.name: SnapshotHeaderRecord,
    ControlType.KRAFT_VERSION.name: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS.name: VotersRecord,
}


def metadata_decoder(*, payloads: bool) -> DecodeRecord:
    """Tells a record of the metadata log or of a snapshot by its type and fields."""

    def describe(view: BatchView, record: Record) -> Row:
        if view.is_control:
            return _control_row(record)
        try:
            decoded = decode_record(record.value or b"")
        except MetadataError as error:
            return {"type": "unknown", "problem": str(error)}
        fields = plain_fields(decoded)
        if not payloads:
            fields = _without_secrets(decoded, fields)
        return {"type": type(decoded).__name__, **fields}

    return describe


def _control_row(record: Record) -> Row:
    row = control_row(record)
    message_class = _CONTROL_MESSAGES.get(row["control"])
    if message_class is None or record.value is None:
        return row
    try:
        message = decode(message_class, int.from_bytes(record.value[:2], "big", signed=True), record.value)
    except (KafkaError, MalformedMessage) as error:
        return {**row, "problem": str(error)}
    return row | plain_fields(message)


def plain_fields(message: Any) -> Row:
    """The fields of a message as JSON knows values; ids as Kafka shows them."""
    return {field.name: _plain(getattr(message, field.name)) for field in dataclasses.fields(message)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return plain_fields(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bytes | memoryview):
        raw = bytes(value)
        return format_uuid(raw) if len(raw) == _UUID_BYTES else raw.hex()
    return value


def _without_secrets(record: Any, fields: Row) -> Row:
    if isinstance(record, ConfigRecord) and record.resource_type == ResourceType.BROKER:
        known = BROKER_CONFIGS.get(record.name)
        if known is None or known.is_sensitive:
            return fields | {"value": HIDDEN}
    return {
        name: HIDDEN if name in ("salt", "stored_key", "server_key") else value
        for name, value in fields.items()
    }


def topic_ids(directory: str) -> dict[str, Uuid]:
    """The topics of the cluster by name, from the newest snapshot and the log behind it. MetadataError if the log
    cannot be read to its end."""
    names: dict[Uuid, str] = {}
    start = 0
    snapshots = list_snapshots(Path(directory))
    if snapshots:
        start = snapshots[-1].end_offset
        for batch in read_snapshot(Path(directory) / snapshots[-1].file_name):
            _fold(names, batch)
    for view in _log_batches(directory):
        if view.base_offset >= start and not view.is_control:
            _fold(names, decode_batch(view))
    return {name: topic_id for topic_id, name in names.items()}


def _fold(names: dict[Uuid, str], batch: DecodedBatch) -> None:
    for record in batch.records:
        if isinstance(record, TopicRecord):
            names[bytes(record.topic_id)] = record.name
        elif isinstance(record, RemoveTopicRecord):
            names.pop(bytes(record.topic_id), None)


def _log_batches(directory: str) -> Iterator[BatchView]:
    for name in sorted(os.listdir(directory)):
        if name.endswith(LOG_SUFFIX):
            with BatchFile(os.path.join(directory, name)) as file:
                for _, view in file.batches():
                    if view.crc_matches():
                        yield view


def verify_metadata_log(directory: str) -> Findings:
    """What the checks of any partition do not look at: records, snapshots and the quorum's state."""
    path = Path(directory)
    for snapshot in list_snapshots(path):
        yield from _try(
            str(path / snapshot.file_name), lambda each=snapshot: read_snapshot(path / each.file_name)
        )
    yield from _try(str(path / "quorum-state"), lambda: read_quorum_state(path))
    for view in _log_batches(directory):
        if not view.is_control:
            yield from _try(directory, lambda each=view: decode_batch(each), offset=view.base_offset)


def verify_identity(directory: str) -> Findings:
    """Whether meta.properties can be read; every directory of a cluster has one."""
    path = Path(directory)
    if not (path / "meta.properties").exists():
        yield Finding(str(path / "meta.properties"), "the file is missing")
        return
    yield from _try(str(path / "meta.properties"), lambda: read_meta_properties(path))


def _try(path: str, read: Any, offset: int | None = None) -> Findings:
    try:
        read()
    except MetadataError as error:
        text = str(error).rstrip(".")
        yield Finding(path, text.removeprefix(f"{path} "), offset=offset)
