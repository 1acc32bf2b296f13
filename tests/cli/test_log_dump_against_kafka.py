"""`ottla log dump` tells the same facts as Kafka's DumpLogSegments about the same files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.log_dump import rows_of
from ottla.log_store.log import Log
from tests.log_store.test_dump_log_segments import dump, written

Facts = list[dict[str, str]]

# Kafka's word for each of ours.
BATCH = {
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "count": "count",
    "baseSequence": "base_sequence",
    "lastSequence": "last_sequence",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "partitionLeaderEpoch": "leader_epoch",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
    "position": "position",
    "CreateTime": "max_timestamp",
    "size": "size",
    "compresscodec": "codec",
    "crc": "crc",
    "isvalid": "is_valid",
}
OTHERS = {
    ".index": {"offset": "offset", "position": "position"},
    ".timeindex": {"timestamp": "timestamp", "offset": "offset"},
    ".txnindex": {
        "version": "version",
        "producerId": "producer_id",
        "firstOffset": "first_offset",
        "lastOffset": "last_offset",
        "lastStableOffset": "last_stable_offset",
    },
    ".snapshot": {
        "producerId": "producer_id",
        "producerEpoch": "producer_epoch",
        "coordinatorEpoch": "coordinator_epoch",
        "lastTimestamp": "timestamp",
        "lastSequence": "last_sequence",
        "lastOffset": "last_offset",
    },
}
RECORD = {"offset": "offset", "CreateTime": "timestamp", "keySize": "key_bytes", "valueSize": "value_bytes"}


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Every kind of file, stopped cleanly."""
    log = written(tmp_path_factory.mktemp("dump"))
    log.flush()
    log.close()
    return log


@pytest.fixture(scope="module")
def kafkas(partition: Log) -> dict[str, str]:
    """What Kafka's tool prints about each file."""
    return dump(Path(partition.directory), "--deep-iteration")


def kafkas_facts(text: str, words: dict[str, str], first: str) -> Facts:
    """The values of lines like `offset: 3 position: 99`, those that begin with `first`."""
    lines = [line.removeprefix("| ") for line in text.splitlines() if line.startswith(first)]
    return [
        {
            ours: re.search(rf"\b{theirs}: (-?\w+)", line)[1]  # type: ignore[index]
            for theirs, ours in words.items()
            if re.search(rf"\b{theirs}: ", line)
        }
        for line in lines
    ]


def our_facts(path: Path, kind: str, words: dict[str, str], **options: bool) -> Facts:
    return [
        {name: _word(row[name]) for name in words.values() if name in row}
        for row in rows_of(str(path), **options)
        if row["kind"] == kind
    ]


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_batches(partition: Log, kafkas: dict[str, str]) -> None:
    """Offsets, positions, sizes, checksums, producers and flags of every batch."""
    total = 0
    for path in sorted(Path(partition.directory).glob("*.log")):
        ours = our_facts(path, "batch", BATCH)
        assert ours == kafkas_facts(kafkas[path.name], BATCH, "baseOffset: ")
        total += len(ours)
    assert total == 204


def test_records(partition: Log, kafkas: dict[str, str]) -> None:
    """Offsets, timestamps and lengths of every record."""
    for path in sorted(Path(partition.directory).glob("*.log")):
        theirs = kafkas_facts(kafkas[path.name], RECORD, "| offset: ")
        ours = our_facts(path, "record", RECORD, records=True)
        assert [row["offset"] for row in ours] == [row["offset"] for row in theirs]
        data = [(mine, other) for mine, other in zip(ours, theirs, strict=True) if "key_bytes" in mine]
        assert all(mine == other for mine, other in data)
        assert data


@pytest.mark.parametrize(
    ("suffix", "kind", "first"),
    [
        (".index", "index", "offset: "),
        (".timeindex", "time", "timestamp: "),
        (".txnindex", "aborted", "version: "),
        (".snapshot", "producer", "producerId: "),
    ],
)
def test_other_files(partition: Log, kafkas: dict[str, str], suffix: str, kind: str, first: str) -> None:
    """Every entry of the indexes and snapshots."""
    total = 0
    for path in sorted(Path(partition.directory).glob(f"*{suffix}")):
        ours = our_facts(path, kind, OTHERS[suffix])
        assert ours == kafkas_facts(kafkas[path.name], OTHERS[suffix], first), path.name
        total += len(ours)
    assert total > 0
