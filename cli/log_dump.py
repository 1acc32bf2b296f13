"""`ottla log dump`: files of a data directory as readable columns, or as JSON lines.

The metadata log, its snapshots and `bootstrap.checkpoint` are told record by record with their fields when records
are asked for.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from ottla.cli.reasons import reason_of
from ottla.log_store.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from ottla.log_store.inspect import rows
from ottla.log_store.leader_epochs import FILE_NAME as LEADER_EPOCHS

_CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
    LEADER_EPOCHS,
)
_TEXT_FILES = ("meta.properties", "partition.metadata", "quorum-state", ".kafka_cleanshutdown")
_BY_SUFFIX: dict[str, Callable[[str], rows.Rows]] = {
    ".index": rows.offset_index_rows,
    ".timeindex": rows.time_index_rows,
    ".txnindex": rows.txn_index_rows,
    ".snapshot": rows.snapshot_rows,
}
_METADATA_DIRECTORY = "__cluster_metadata-"
_FLAGS = {
    "is_transactional": "transactional",
    "is_control": "control",
    "has_delete_horizon": "delete-horizon",
}


class NotDumpable(Exception):
    """A file that is none of a data directory's."""


def dump(arguments: argparse.Namespace) -> int:
    """Show every file; 2 if one cannot be read."""
    code = 0
    for path in _files(arguments.paths):
        try:
            _dump_file(path, arguments, sys.stdout)
        except BrokenPipeError:  # the reader, such as `head`, has had enough
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is still buffered must go somewhere
            return code
        except (OSError, NotDumpable, ValueError) as error:
            print(f"ottla: cannot dump {path}: {reason_of(error, path)}", file=sys.stderr)
            code = 2
    return code


def rows_of(path: str, *, records: bool = False, payloads: bool = False) -> rows.Rows:
    """What is in one file; NotDumpable if its name is none that a data directory has."""
    name = os.path.basename(path)
    if name in _CHECKPOINTS:
        return rows.checkpoint_rows(path)
    if name in _TEXT_FILES:
        return rows.text_rows(path)
    suffix = os.path.splitext(name)[1]
    if suffix in (".log", ".checkpoint"):
        return rows.batch_rows(path, decode=_decoder(path, payloads) if records or payloads else None)
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix](path)
    raise NotDumpable("it is no file of a data directory")


def _decoder(path: str, payloads: bool) -> rows.DecodeRecord:
    directory = os.path.basename(os.path.dirname(os.path.abspath(path)))
    if path.endswith(".checkpoint") or directory.startswith(_METADATA_DIRECTORY):
        from ottla.metadata.inspect import metadata_decoder

        return metadata_decoder(payloads=payloads)
    return rows.record_decoder(payloads=payloads)


def _files(paths: Iterable[str]) -> Iterator[str]:
    """The files to show: those named, and of a directory those that can be, partitions included."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                if name in (*_CHECKPOINTS, *_TEXT_FILES) or os.path.splitext(name)[1] in (
                    ".log",
                    ".checkpoint",
                    *_BY_SUFFIX,
                ):
                    yield os.path.join(folder, name)


def _dump_file(path: str, arguments: argparse.Namespace, out: TextIO) -> None:
    found = rows_of(path, records=arguments.records, payloads=arguments.payload)
    if arguments.json:
        for row in found:
            print(json.dumps({"file": path, **row}), file=out)
        return
    print(path, file=out)
    previous: tuple[str, ...] = ()
    for row in found:
        cells = _cells(row)
        titles = tuple(cells)
        if titles != previous and row["kind"] in _WIDTHS:
            print(_line(titles, titles), file=out)
        previous = titles if row["kind"] in _WIDTHS else previous
        print(_line(titles, cells.values()) if row["kind"] in _WIDTHS else _loose(row), file=out)
    print(file=out)


_WIDTHS = {"batch", "index", "time", "aborted", "producer", "checkpoint"}
"""The kinds of rows that are shown as columns under their names."""

_COLUMN_WIDTHS = {
    "offsets": 21,
    "timestamp": 13,
    "max_timestamp": 13,
    "time": 13,
    "codec": 6,
    "producer": 22,
    "crc": 10,
    "topic": 30,
    "flags": 0,
}


def _cells(row: rows.Row) -> dict[str, str]:
    if row["kind"] != "batch":
        return {name: str(value) for name, value in row.items() if name != "kind"}
    producer = "-"
    if row["producer_id"] >= 0:
        sequences = f"{row['base_sequence']}..{row['last_sequence']}" if row["base_sequence"] >= 0 else "-"
        producer = f"{row['producer_id']}/{row['producer_epoch']} {sequences}"
    flags = [word for name, word in _FLAGS.items() if row[name]]
    if row["timestamp_type"] == "LogAppendTime":
        flags.append("append-time")
    if not row["is_valid"]:
        flags.append("CRC-WRONG")
    return {
        "offsets": f"{row['base_offset']}..{row['last_offset']}",
        "count": str(row["count"]),
        "position": str(row["position"]),
        "size": str(row["size"]),
        "epoch": str(row["leader_epoch"]),
        "max_timestamp": str(row["max_timestamp"]),
        "codec": row["codec"],
        "crc": f"{row['crc']:#010x}",
        "producer": producer,
        "flags": " ".join(flags),
    }


def _line(titles: Iterable[str], values: Iterable[str]) -> str:
    widths = [_COLUMN_WIDTHS.get(title, max(8, len(title))) for title in titles]
    return "  " + "  ".join(f"{value:<{width}}" for value, width in zip(values, widths, strict=True)).rstrip()


def _loose(row: rows.Row) -> str:
    """A row whose fields differ from one to the next: `name=value`, records further to the right."""
    if row["kind"] in ("problem", "note", "line"):
        return "  " + str(row["text" if row["kind"] == "line" else row["kind"]])
    return "    " + " ".join(f"{name}={_shown(value)}" for name, value in row.items() if name != "kind")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | list | dict) else str(value)
