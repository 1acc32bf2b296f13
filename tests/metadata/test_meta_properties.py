"""meta.properties: who a directory belongs to, and every way in which directories can be mixed up."""

from pathlib import Path

import pytest

from ottla.metadata.errors import MetadataError
from ottla.metadata.store.meta_properties import (
    MetaProperties,
    identify,
    read_meta_properties,
    write_meta_properties,
)
from ottla.wire.uuids import format_uuid, parse_uuid
from tests.metadata.images import uuid_source

KAFKAS_FILE = """#
#Mon Nov 16 07:30:20 UTC 2026
node.id=1
directory.id=z-h4BsuVvIaC_gF5FxAELQ
version=1
cluster.id=4L6g3nShT-eMCtK--X86sw
"""


def test_kafkas_file_is_read(tmp_path: Path) -> None:
    """The file as `kafka-storage format` wrote it."""
    (tmp_path / "meta.properties").write_text(KAFKAS_FILE)
    assert read_meta_properties(tmp_path) == MetaProperties(
        "4L6g3nShT-eMCtK--X86sw", 1, parse_uuid("z-h4BsuVvIaC_gF5FxAELQ")
    )


def test_written_as_kafka_writes_it(tmp_path: Path) -> None:
    """The same values at the same moment give the same file."""
    properties = MetaProperties("4L6g3nShT-eMCtK--X86sw", 1, parse_uuid("z-h4BsuVvIaC_gF5FxAELQ"))
    write_meta_properties(tmp_path, properties, 1_794_814_220_000)
    assert (tmp_path / "meta.properties").read_text() == KAFKAS_FILE
    assert [path.name for path in tmp_path.iterdir()] == ["meta.properties"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("version=1", "version=0"), "version '0', but only version 1 is known"),
        (("version=1", "version=7"), "version '7', but only version 1 is known"),
        (("version=1\n", ""), "version ''"),
        (("cluster.id=4L6g3nShT-eMCtK--X86sw", ""), "no cluster.id"),
        (("node.id=1", "node.id=one"), "no node.id that is a number"),
        (("directory.id=z-h4BsuVvIaC_gF5FxAELQ", "directory.id=zzz"), "no directory.id that is an id"),
    ],
)
def test_unusable_files_are_named(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    """One sentence with the path says what is wrong."""
    (tmp_path / "meta.properties").write_text(KAFKAS_FILE.replace(*change))
    with pytest.raises(MetadataError, match=words) as caught:
        read_meta_properties(tmp_path)
    assert str(tmp_path) in str(caught.value)


def mark(
    directory: Path, cluster_id: str = "cluster", node_id: int = 1, directory_id: bytes = b"d" * 16
) -> Path:
    directory.mkdir()
    write_meta_properties(directory, MetaProperties(cluster_id, node_id, directory_id), 0)
    return directory


def test_new_directories_get_an_identity(tmp_path: Path) -> None:
    """Nothing known: node 1, a new cluster id, an id per directory; and nothing is written yet."""
    identity = identify([tmp_path / "a", tmp_path / "b"], None, None, uuid_source())
    assert identity.node_id == 1
    assert len(set(identity.directory_ids.values())) == 2
    assert len(identity.cluster_id) == 22
    assert identity.unmarked == (tmp_path / "a", tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


def test_ids_that_tools_cannot_be_given_are_not_made(tmp_path: Path) -> None:
    """Reserved ids and those whose text begins with a dash are passed over."""
    offered = iter([bytes(16), bytes(15) + b"\x02", b"\xf8" * 16, b"a" * 16, b"b" * 16])
    identity = identify([tmp_path], None, None, lambda: next(offered))
    assert identity.directory_ids == {tmp_path: b"a" * 16}
    assert identity.cluster_id == format_uuid(b"b" * 16)


def test_known_directory_tells_the_others(tmp_path: Path) -> None:
    """A directory added later joins the cluster and node of the first."""
    known = mark(tmp_path / "a", "cluster", 7)
    identity = identify([tmp_path / "b", known], None, None, uuid_source())
    assert (identity.cluster_id, identity.node_id) == ("cluster", 7)
    assert identity.unmarked == (tmp_path / "b",)
    assert identity.directory_ids[known] == b"d" * 16


@pytest.mark.parametrize(
    ("configured", "words"),
    [
        ({"node_id": 2}, "belongs to node.id 1, not to node.id 2"),
        ({"cluster_id": "other"}, "belongs to cluster cluster, not to cluster other"),
    ],
)
def test_configuration_must_agree(tmp_path: Path, configured: dict[str, object], words: str) -> None:
    """A directory of another node or cluster is refused."""
    asked: dict[str, object] = {"node_id": None, "cluster_id": None, **configured}
    with pytest.raises(MetadataError, match=words):
        identify([mark(tmp_path / "a")], new_uuid=uuid_source(), **asked)  # type: ignore[arg-type]


def test_directories_must_agree(tmp_path: Path) -> None:
    """Two clusters, two nodes, or the same directory twice."""
    first = mark(tmp_path / "a")
    for other, words in (
        (mark(tmp_path / "b", "another", 1, b"e" * 16), "belongs to cluster another"),
        (mark(tmp_path / "c", "cluster", 2, b"e" * 16), "belongs to node.id 2"),
        (mark(tmp_path / "d"), "directory.id .* of another log directory"),
    ):
        with pytest.raises(MetadataError, match=words):
            identify([first, other], None, None, uuid_source())
