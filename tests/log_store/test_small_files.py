"""Checkpoints, leader epochs, partition.metadata and directory names: their text, and what is refused."""

from pathlib import Path

import pytest

from ottla.log_store.checkpoints import CorruptCheckpoint, read_offsets, write_offsets
from ottla.log_store.files import OS_FILE_SYSTEM
from ottla.log_store.leader_epochs import EpochEntry, LeaderEpochs
from ottla.log_store.naming import (
    deleted_directory,
    is_deleted_directory,
    parse_partition_directory,
    partition_directory,
)
from ottla.log_store.partition_metadata import (
    CorruptPartitionMetadata,
    read_partition_metadata,
    write_partition_metadata,
)

FS = OS_FILE_SYSTEM


def test_offset_checkpoint_text(tmp_path: Path) -> None:
    """An offset checkpoint is version, count and a line per partition, and reads back."""
    path = tmp_path / "recovery-point-offset-checkpoint"
    offsets = {("orders", 0): 1500, ("a-b.c", 12): 0}
    write_offsets(FS, str(path), offsets)
    assert path.read_text() == "0\n2\norders 0 1500\na-b.c 12 0\n"
    assert read_offsets(str(path)) == offsets
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("text", ["", "0\n", "0\n0\n"])
def test_empty_checkpoints(tmp_path: Path, text: str) -> None:
    """An absent, empty or entryless checkpoint has no offsets."""
    path = tmp_path / "checkpoint"
    assert read_offsets(str(path)) == {}
    path.write_text(text)
    assert read_offsets(str(path)) == {}


@pytest.mark.parametrize(
    "text", ["1\n0\n", "x", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na b c\n", "0\nx\na 0 1\n"]
)
def test_corrupt_checkpoints(tmp_path: Path, text: str) -> None:
    """Another version, a wrong count or a malformed line is refused."""
    path = tmp_path / "checkpoint"
    path.write_text(text)
    with pytest.raises(CorruptCheckpoint):
        read_offsets(str(path))


def epochs_of(path: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs(FS, str(path))
    for epoch, start in entries:
        epochs.assign(epoch, start)
    return epochs


def test_leader_epochs_text(tmp_path: Path) -> None:
    """Epochs are kept as lines of epoch and start offset and load again."""
    path = tmp_path / "leader-epoch-checkpoint"
    epochs_of(path, (0, 0), (0, 5), (2, 10), (3, 10))
    assert path.read_text() == "0\n2\n0 0\n3 10\n"
    again = LeaderEpochs(FS, str(path))
    again.load()
    assert again.entries == [EpochEntry(0, 0), EpochEntry(3, 10)]
    assert again.latest_epoch == 3


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(-1, (-1, -1)), (0, (0, 10)), (1, (1, 10)), (2, (2, 50)), (3, (2, 50)), (4, (4, 100)), (5, (-1, -1))],
)
def test_end_offset_for_epoch(tmp_path: Path, asked: int, expected: tuple[int, int]) -> None:
    """The end of an epoch is where the next one begins, of the latest the log's end, of a later unknown."""
    epochs = epochs_of(tmp_path / "e", (1, 5), (2, 10), (4, 50))
    if asked == 0:  # before the first known epoch: its start
        assert epochs.end_offset_for(0, 100) == (0, 5)
    else:
        assert epochs.end_offset_for(asked, 100) == expected


def test_truncating_epochs(tmp_path: Path) -> None:
    """Cutting the end drops epochs, cutting the start lets the epoch there begin at the new start."""
    path = tmp_path / "e"
    epochs = epochs_of(path, (0, 0), (1, 10), (2, 20), (3, 30))
    epochs.truncate_from_end(30)
    epochs.truncate_from_start(15)
    assert epochs.entries == [EpochEntry(1, 15), EpochEntry(2, 20)]
    # The start is cut off in the file with the next flush.
    assert path.read_text() == "0\n3\n0 0\n1 10\n2 20\n"
    assert epochs.flush()
    assert path.read_text() == "0\n2\n1 15\n2 20\n"
    assert epochs.epoch_for_offset(14) is None
    assert epochs.epoch_for_offset(15) == 1
    assert epochs.epoch_for_offset(99) == 2


def test_partition_metadata(tmp_path: Path) -> None:
    """partition.metadata is two lines with the id in base64."""
    path = tmp_path / "partition.metadata"
    assert read_partition_metadata(str(path)) is None
    topic_id = bytes(range(16))
    write_partition_metadata(FS, str(path), topic_id, sync=True)
    assert path.read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert read_partition_metadata(str(path)) == topic_id
    for text in ("", "version: 0", "version: 0\ntopic_id: x", "version: 0\ntopic_id: " + "A" * 22):
        path.write_text(text)
        with pytest.raises(CorruptPartitionMetadata):
            read_partition_metadata(str(path))


@pytest.mark.parametrize("topic", ["orders", "a-b", "a-1", "t.0-9_x", "x" * 249])
def test_directory_names(topic: str) -> None:
    """Names of partitions parse back; those of deleted ones keep within 255 characters and do not parse."""
    assert parse_partition_directory(partition_directory(topic, 12)) == (topic, 12)
    deleted = deleted_directory(topic, 12)
    assert len(deleted) <= 255
    assert is_deleted_directory(deleted)
    with pytest.raises(ValueError, match="live"):
        parse_partition_directory(deleted)


@pytest.mark.parametrize("name", ["orders", "-1", "orders-", "orders-x", "lost+found", "orders-0.abc-future"])
def test_foreign_directory_names(name: str) -> None:
    """What is no partition is not taken for one."""
    with pytest.raises(ValueError, match=r"form|live"):
        parse_partition_directory(name)
