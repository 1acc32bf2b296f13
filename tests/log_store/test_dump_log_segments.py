"""Kafka's own DumpLogSegments reads every file that a partition has, and finds nothing wrong."""

import re
import subprocess
from pathlib import Path

import pytest

from compat_tests.kafka.jars import java_executable, kafka_classpath
from ottla.log_store.log import Log
from ottla.log_store.validation import AppendOrigin
from ottla.wire.records.control import ControlType, build_end_txn_marker
from tests.log_store.batches import NOW_MS, append, batch, new_log, producer_batch, reopen

BATCHES = 200


def written(directory: Path) -> Log:
    """Every codec, idempotent and transactional producers, several segments and leader epochs."""
    log = new_log(directory, internal_segment_bytes=6000, index_interval_bytes=300)
    sequence = 0
    for number in range(BATCHES):
        values = [b"v" * (number % 90) for _ in range(1 + number % 5)]
        times = [NOW_MS + number * 10 - index for index in range(len(values))]
        header = {}
        if number % 3 == 0:
            header = {"producer_id": 4000, "producer_epoch": 2, "base_sequence": sequence}
            sequence += len(values)
        append(log, batch(*values, timestamps=times, codec=number % 5, **header), epoch=number // 90)
    for txn, kind in enumerate((ControlType.ABORT, ControlType.COMMIT)):
        append(log, producer_batch(sequence=txn, producer_id=4001, is_transactional=True), epoch=3)
        marker = build_end_txn_marker(
            kind, timestamp=NOW_MS + 5000, producer_id=4001, producer_epoch=0, coordinator_epoch=txn
        )
        append(log, memoryview(bytearray(marker)), epoch=3, origin=AppendOrigin.COORDINATOR)
    return log


def dump(directory: Path, *options: str) -> dict[str, str]:
    """What the tool prints about each file."""
    files = sorted(path for path in directory.iterdir() if path.name[0].isdigit())
    command = [
        java_executable(),
        "-cp",
        kafka_classpath(),
        "org.apache.kafka.tools.DumpLogSegments",
        *options,
    ]
    command += ["--files", ",".join(map(str, files))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Exception" not in done.stdout + done.stderr
    parts = re.split(r"^Dumping (.*)$", done.stdout, flags=re.MULTILINE)[1:]
    return {Path(name).name: text for name, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Written, crashed, recovered and then stopped cleanly."""
    log = written(tmp_path_factory.mktemp("dump"))
    log.flush()
    log.release()
    log = reopen(log, clean=False, recovery_point=log.segments[-2].base_offset)
    log.flush()
    log.close()
    return log


def test_deep_iteration(partition: Log) -> None:
    """All records, every index entry and the snapshots are right in Kafka's eyes."""
    found = dump(Path(partition.directory), "--deep-iteration")
    logs = [text for name, text in found.items() if name.endswith(".log")]
    assert len(logs) > 3
    everything = "\n".join(found.values())
    assert not re.search(r"mismatch|not found|out of order|corrupt|invalid", everything, re.IGNORECASE)
    offsets = [
        int(offset) for text in logs for offset in re.findall(r"^\| offset: (\d+)", text, re.MULTILINE)
    ]
    assert offsets == list(range(partition.log_end_offset))
    assert all("isvalid: false" not in text for text in logs)
    entries = sum(text.count("offset: ") for name, text in found.items() if name.endswith(".index"))
    assert entries > BATCHES // 10
    assert "endTxnMarker: ABORT coordinatorEpoch: 0" in everything
    [aborted] = [text for name, text in found.items() if name.endswith(".txnindex")]
    assert "producerId: 4001" in aborted
    last = found[f"{partition.log_end_offset:020d}.snapshot"]
    assert "producerId: 4000 producerEpoch: 2" in last
    assert "producerId: 4001 producerEpoch: 0 coordinatorEpoch: 1" in last


def test_index_sanity_check(partition: Log) -> None:
    """The indexes pass the check Kafka makes of them."""
    found = dump(Path(partition.directory), "--index-sanity-check")
    indexes = {name: text for name, text in found.items() if name.endswith("index") and "txn" not in name}
    assert len(indexes) > 6
    for name, text in indexes.items():
        assert "passed sanity check" in text, name
