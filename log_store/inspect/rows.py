"""What is in a file, row by row: values for people and machines, of every kind of file that a log directory holds.

A row is a plain dict whose `kind` says what it is about. Nothing is hidden because it is damaged: a file is told as
far as it can be read, and then a row of kind `problem` says why not further. What records carry is told only by its
length unless payloads are asked for, and then with everything escaped that a terminal could take for more than text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from ottla.log_store.checkpoints import CorruptCheckpoint, read_checkpoint
from ottla.log_store.files import offset_of_name
from ottla.log_store.inspect.batch_file import BatchFile
from ottla.log_store.inspect.index_entries import read_offset_entries, read_time_entries, read_txn_entries
from ottla.log_store.leader_epochs import FILE_NAME as LEADER_EPOCHS
from ottla.log_store.producer_snapshot import CorruptSnapshot, read_snapshot
from ottla.wire.errors import KafkaError
from ottla.wire.records.compression import Codec
from ottla.wire.records.control import ControlType, control_type_of, coordinator_epoch_of
from ottla.wire.records.header import LOG_APPEND_TIME, BatchView
from ottla.wire.records.records import Record, iter_records

Row = dict[str, Any]
Rows = Iterator[Row]
DecodeRecord = Callable[[BatchView, Record], Row]


def batch_rows(path: str, *, decode: DecodeRecord | None) -> Rows:
    """The batches of a segment or metadata snapshot, each followed by its records if `decode` tells them."""
    with BatchFile(path) as file:
        for position, view in file.batches():
            is_valid = view.crc_matches()
            yield _batch_row(position, view, is_valid)
            if decode is not None and is_valid:
                try:
                    for record in iter_records(view):
                        row = {"kind": "record", "offset": record.offset, "timestamp": record.timestamp}
                        yield row | decode(view, record)
                except KafkaError as error:
                    yield problem(f"the records cannot be read: {error.detail}")
        if file.problem:
            left = file.size - file.end
            what = (
                "zero bytes, preallocated"
                if file.is_zero_filled
                else f"bytes that are no batch: {file.problem}"
            )
            yield problem(f"from byte {file.end} on: {left} {what}")


def _batch_row(position: int, view: BatchView, is_valid: bool) -> Row:
    codec = view.codec
    return {
        "kind": "batch",
        "base_offset": view.base_offset,
        "last_offset": view.last_offset,
        "count": view.records_count,
        "position": position,
        "size": view.size_in_bytes,
        "leader_epoch": view.partition_leader_epoch,
        "timestamp_type": "LogAppendTime" if view.timestamp_type == LOG_APPEND_TIME else "CreateTime",
        "base_timestamp": view.base_timestamp,
        "max_timestamp": view.max_timestamp,
        "codec": Codec(codec).name.lower() if codec in list(Codec) else str(codec),
        "producer_id": view.producer_id,
        "producer_epoch": view.producer_epoch,
        "base_sequence": view.base_sequence,
        "last_sequence": view.last_sequence,
        "is_transactional": view.is_transactional,
        "is_control": view.is_control,
        "has_delete_horizon": view.has_delete_horizon,
        "crc": view.crc,
        "is_valid": is_valid,
    }


def record_decoder(*, payloads: bool) -> DecodeRecord:
    """Tells a record of any topic: the lengths of its parts, or the parts themselves."""

    def describe(view: BatchView, record: Record) -> Row:
        if view.is_control:
            return control_row(record)
        row: Row = {
            "key_bytes": -1 if record.key is None else len(record.key),
            "value_bytes": -1 if record.value is None else len(record.value),
            "headers": len(record.headers),
        }
        if payloads:
            row["key"] = escaped(record.key)
            row["value"] = escaped(record.value)
            row["headers"] = [
                [escaped(name.encode("utf-8", "surrogateescape")), escaped(value)]
                for name, value in record.headers
            ]
        return row

    return describe


def control_row(record: Record) -> Row:
    """A control record by its type; the end of a transaction with its coordinator epoch."""
    number = control_type_of(record)
    if number not in list(ControlType):
        return {"control": str(number)}
    control_type = ControlType(number)
    row: Row = {"control": control_type.name}
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        row["coordinator_epoch"] = coordinator_epoch_of(record)
    return row


def offset_index_rows(path: str) -> Rows:
    entries, zero_entries, odd_bytes = read_offset_entries(path, offset_of_name(os.path.basename(path)))
    for offset, position in entries:
        yield {"kind": "index", "offset": offset, "position": position}
    yield from _rest(zero_entries, odd_bytes)


def time_index_rows(path: str) -> Rows:
    entries, zero_entries, odd_bytes = read_time_entries(path, offset_of_name(os.path.basename(path)))
    for timestamp, offset in entries:
        yield {"kind": "time", "timestamp": timestamp, "offset": offset}
    yield from _rest(zero_entries, odd_bytes)


def txn_index_rows(path: str) -> Rows:
    entries, _, odd_bytes = read_txn_entries(path)
    for version, txn in entries:
        yield {"kind": "aborted", "version": version, **txn._asdict()}
    yield from _rest(0, odd_bytes)


def snapshot_rows(path: str) -> Rows:
    try:
        entries = read_snapshot(path)
    except CorruptSnapshot as error:
        yield problem(str(error))
        return
    for entry in entries:
        first_offset = entry.batches[-1].first_offset if entry.batches else -1
        txn_first_offset = entry.current_txn_first_offset
        yield {
            "kind": "producer",
            "producer_id": entry.producer_id,
            "producer_epoch": entry.producer_epoch,
            "last_sequence": entry.last_sequence,
            "first_offset": first_offset,
            "last_offset": entry.last_offset,
            "timestamp": entry.last_timestamp,
            "coordinator_epoch": entry.coordinator_epoch,
            "current_txn_first_offset": -1 if txn_first_offset is None else txn_first_offset,
        }


def checkpoint_rows(path: str) -> Rows:
    """The lines of one of the four offset checkpoints, or of the leader epochs."""
    names = (
        ("epoch", "start_offset")
        if os.path.basename(path) == LEADER_EPOCHS
        else ("topic", "partition", "offset")
    )
    try:
        for fields in read_checkpoint(path):
            if len(fields) != len(names):
                yield problem(f"a line of {len(fields)} fields")
                continue
            values = [
                int(text) if text.lstrip("-").isdigit() and name != "topic" else text
                for name, text in zip(names, fields, strict=True)
            ]
            yield {"kind": "checkpoint", **dict(zip(names, values, strict=True))}
    except CorruptCheckpoint as error:
        yield problem(str(error))


def text_rows(path: str) -> Rows:
    """The lines of a small text file."""
    with open(path, "rb") as file:
        for line in file.read().splitlines():
            yield {"kind": "line", "text": escaped(line)}


def problem(what: str) -> Row:
    return {"kind": "problem", "problem": what}


def _rest(zero_entries: int, odd_bytes: int) -> Rows:
    if zero_entries:
        yield {"kind": "note", "note": f"room for {zero_entries} more entries"}
    if odd_bytes:
        yield problem(f"{odd_bytes} bytes at the end are no whole entry")


def escaped(data: bytes | None) -> str | None:
    r"""Text as it is; every other byte as \xNN, and a backslash as two, so that it can be undone."""
    if data is None:
        return None
    pieces = []
    for character in data.decode("utf-8", "surrogateescape"):
        if character == "\\":
            pieces.append("\\\\")
        elif character.isprintable():
            pieces.append(character)
        else:
            raw = character.encode("utf-8", "surrogateescape")
            pieces.append("".join(f"\\x{byte:02x}" for byte in raw))
    return "".join(pieces)
