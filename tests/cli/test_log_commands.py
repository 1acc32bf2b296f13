"""`ottla log dump` and `ottla log verify`: what they print, and with which exit code."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.log_dump import rows_of
from ottla.cli.log_verify import Progress
from ottla.cli.main import main
from ottla.log_store.files import OS_FILE_SYSTEM
from ottla.log_store.partition_metadata import write_partition_metadata
from ottla.metadata.records import ConfigRecord, TopicRecord, UserScramCredentialRecord
from ottla.metadata.store.batches import metadata_batch
from ottla.metadata.store.meta_properties import MetaProperties, write_meta_properties
from ottla.metadata.store.snapshots import write_snapshot
from ottla.wire.records import Record, build_batch
from tests.log_store.batches import NOW_MS, TOPIC_ID, append, batch, new_log

METADATA_VERSION = 30
OTHER_ID = bytes(range(16, 32))


def write_metadata_log(directory: Path, *records: Any) -> Path:
    """A metadata log of one batch, with what stands beside it."""
    log = directory / "__cluster_metadata-0"
    log.mkdir(parents=True)
    data = metadata_batch(records, base_offset=0, epoch=1, now_ms=NOW_MS, metadata_version=METADATA_VERSION)
    (log / f"{0:020d}.log").write_bytes(data)
    (log / f"{0:020d}.index").touch()
    (log / f"{0:020d}.timeindex").touch()
    (log / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    write_partition_metadata(OS_FILE_SYSTEM, str(log / "partition.metadata"), bytes(15) + b"\x01", sync=False)
    return log


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a metadata log and one partition."""
    write_metadata_log(tmp_path, TopicRecord(name="orders", topic_id=TOPIC_ID))
    write_meta_properties(tmp_path, MetaProperties("cluster", 1, OTHER_ID), NOW_MS)
    log = new_log(tmp_path, "orders-0")
    append(log, batch(b"a", b"b"))
    log.flush()
    log.close()
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["log", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_verify_finds_nothing(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, nothing on standard output, a summary on standard error."""
    for path in (data, data / "orders-0", data / "__cluster_metadata-0"):
        code, out, err = run(capsys, "verify", str(path))
        assert (code, out) == (0, "")
        assert "nothing wrong" in err


def test_verify_finds_something(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and one line a finding, as text and as JSON."""
    path = data / "orders-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    code, out, err = run(capsys, "verify", str(data / "orders-0"))
    assert code == 1
    assert out.startswith(f"{path}: offset 0, byte 0: the CRC of the batch is not ")
    assert "1 finding" in err
    code, out, _ = run(capsys, "verify", "--json", str(data))
    assert code == 1
    told = json.loads(out)
    assert (told["file"], told["offset"], told["position"]) == (str(path), 0, 0)


def test_verify_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 for what is not there and for what is no data directory, whatever else is found."""
    nowhere = f"{tmp_path}/nowhere/"
    code, _, err = run(capsys, "verify", nowhere)
    assert (code, err) == (2, f"ottla: cannot verify {nowhere}: No such file or directory\n")
    code, _, err = run(capsys, "verify", str(tmp_path))
    assert code == 2
    assert "it is no partition and no data directory" in err


def test_verify_another_topic_id(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """partition.metadata is held against the metadata log, and so is the topic itself."""
    write_partition_metadata(
        OS_FILE_SYSTEM, str(data / "orders-0" / "partition.metadata"), OTHER_ID, sync=False
    )
    _, out, _ = run(capsys, "verify", str(data))
    assert out.count("\n") == 1
    assert "the topic id is EBESExQVFhcYGRobHB0eHw, but orders has AAECAwQFBgcICQoLDA0ODw" in out
    new_log(data, "bills-0").close()
    _, out, _ = run(capsys, "verify", str(data))
    assert "bills-0: the cluster knows no topic bills" in out


def test_topic_ids_come_from_a_snapshot_too(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Topics of the newest snapshot are known although the log begins behind it."""
    log = data / "__cluster_metadata-0"
    write_snapshot(
        log / f"{1:020d}-{1:010d}.checkpoint",
        [TopicRecord(name="bills", topic_id=TOPIC_ID)],
        epoch=1,
        last_contained_log_ms=NOW_MS,
        now_ms=NOW_MS,
        metadata_version=METADATA_VERSION,
    )
    new_log(data, "bills-0").close()
    code, out, _ = run(capsys, "verify", str(data))
    assert code == 1
    assert out == f"{data / 'orders-0'}: the cluster knows no topic orders\n"


@pytest.mark.parametrize(
    "kind", ["snapshot", "quorum-state", "record", "meta.properties", "no meta.properties"]
)
def test_verify_damaged_metadata(data: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What only the metadata room can read is read as well."""
    log = data / "__cluster_metadata-0"
    snapshot = log / f"{1:020d}-{1:010d}.checkpoint"
    if kind == "snapshot":
        snapshot.write_bytes(b"noise that is no batch of records at all")
        expected = "is damaged"
    elif kind == "quorum-state":
        (log / "quorum-state").write_text("{")
        expected = "is not a quorum state"
    elif kind == "record":
        noise = build_batch([Record(0, NOW_MS, None, b"\x01\x63\x00")], partition_leader_epoch=1)
        (log / f"{0:020d}.log").write_bytes(noise)
        expected = "unknown type 99"
    elif kind == "meta.properties":
        (data / "meta.properties").write_text("version=9\n")
        expected = "has version '9'"
    else:
        (data / "meta.properties").unlink()
        expected = "the file is missing"
    code, out, _ = run(capsys, "verify", str(data))
    assert code == 1
    assert out.count("\n") == 1
    assert expected in out


def test_dump_columns(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file's name, the names of the columns, and a line for each batch."""
    code, out, _ = run(capsys, "dump", str(data / "orders-0" / f"{0:020d}.log"))
    assert code == 0
    name, titles, row, _ = out.split("\n", 3)
    assert name.endswith(f"{0:020d}.log")
    assert titles.split()[:4] == ["offsets", "count", "position", "size"]
    assert row.split()[:4] == ["0..1", "2", "0", "77"]


def test_dump_shows_payloads_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lengths with --records; contents with --payload, with nothing in them that a terminal obeys."""
    log = new_log(tmp_path)
    append(log, batch("\x1b[31mžluť\\".encode() + b"\xff", keys=[b"secret"]))
    log.close()
    path = str(Path(log.directory) / f"{0:020d}.log")
    _, out, _ = run(capsys, "dump", "--records", path)
    assert "key_bytes=6 value_bytes=13" in out
    assert "secret" not in out
    _, out, _ = run(capsys, "dump", "--payload", path)
    assert "secret" in out
    assert "\x1b" not in out
    _, out, _ = run(capsys, "dump", "--payload", "--json", path)
    record = json.loads(out.splitlines()[1])
    assert (record["key"], record["value"]) == ("secret", "\\x1b[31mžluť\\\\\\xff")


def test_dump_a_directory(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every file that can be shown is, each line of JSON says which."""
    code, out, _ = run(capsys, "dump", "--json", str(data))
    assert code == 0
    files = {Path(json.loads(line)["file"]).name for line in out.splitlines()}
    assert {f"{0:020d}.log", "leader-epoch-checkpoint", "partition.metadata", "meta.properties"} <= files


def test_dump_metadata_records_without_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Records have their types and fields; credentials and passwords only with --payload."""
    records = (
        TopicRecord(name="orders", topic_id=TOPIC_ID),
        UserScramCredentialRecord(
            name="eve", mechanism=1, salt=b"sa", stored_key=b"k", server_key=b"s", iterations=4096
        ),
        ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value="hunter2"),
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"),
    )
    log = write_metadata_log(tmp_path, *records)
    _, out, _ = run(capsys, "dump", "--records", "--json", str(log / f"{0:020d}.log"))
    _, topic, user, password, retention = map(json.loads, out.splitlines())
    assert (topic["type"], topic["name"], topic["topic_id"]) == (
        "TopicRecord",
        "orders",
        "AAECAwQFBgcICQoLDA0ODw",
    )
    assert (user["salt"], user["stored_key"], user["server_key"]) == ("[hidden]",) * 3
    assert (password["value"], retention["value"]) == ("[hidden]", "5")
    _, out, _ = run(capsys, "dump", "--payload", "--json", str(log / f"{0:020d}.log"))
    assert "hunter2" in out
    assert b"sa".hex() in out


def test_dump_damaged_files(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file is shown as far as it can be read, and then what is wrong with it."""
    path = data / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes() + b"noise" * 10)
    [batch_row, problem] = rows_of(str(path))
    assert batch_row["kind"] == "batch"
    assert problem["problem"].startswith("from byte 77 on: 50 bytes that are no batch")
    snapshot = data / "orders-0" / f"{2:020d}.snapshot"
    snapshot.write_bytes(b"\0\1")
    assert [row["problem"] for row in rows_of(str(snapshot))] == ["the file is cut off"]
    epochs = data / "orders-0" / "leader-epoch-checkpoint"
    epochs.write_text("0\n1\n1 2 3\n")
    assert [row["problem"] for row in rows_of(str(epochs))] == ["a line of 3 fields"]


def test_dump_what_is_no_file_of_a_data_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and the other files are still shown."""
    (tmp_path / "notes.txt").touch()
    (tmp_path / "meta.properties").write_text("version=1\n")
    code, out, err = run(
        capsys,
        "dump",
        str(tmp_path / "notes.txt"),
        str(tmp_path / "none.log"),
        str(tmp_path / "meta.properties"),
    )
    assert code == 2
    assert "version=1" in out
    assert err.count("cannot dump") == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar once it takes longer than a moment, taken away again; nothing in a pipe."""
    monkeypatch.setattr(Progress, "QUIET_SECONDS", 0.0)
    for out in (Terminal(), io.StringIO()):
        bar = Progress(100 << 20, out)
        bar.advance(50 << 20)
        bar.clear()
        if out.isatty():
            assert "[###############...............]  50% 50 of 100 MiB" in out.getvalue()
            assert out.getvalue().endswith("\r\x1b[K")
        else:
            assert out.getvalue() == ""


def test_help_imports_nothing_heavy() -> None:
    """The front door opens at once: neither trio nor the broker is imported for it."""
    program = (
        "import sys; from ottla.cli.main import main\n"
        "try: main(['log', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name in ('trio', 'crc32c') or name.startswith('ottla.log')),"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.strip() == "[]"
    assert "dump" in done.stdout
