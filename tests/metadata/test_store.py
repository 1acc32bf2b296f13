"""The store: a directory is made, taken over, recovered after a crash, and refused when it is not ours."""

import json
from pathlib import Path

import pytest

from ottla.metadata.control_records import KRaftVersionRecord
from ottla.metadata.errors import MetadataError
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from ottla.metadata.store import MetadataSettings
from ottla.metadata.store.snapshots import SnapshotId, list_snapshots, read_snapshot, write_snapshot
from ottla.metadata.voters_record import Voter, VotersRecord
from ottla.wire.errors import ErrorCode, KafkaError
from tests.metadata.directories import NOW_MS, create_topic, depart, open_store, register

LOG = "__cluster_metadata-0"
SMALL = MetadataSettings(max_bytes_between_snapshots=2000)


def files_of(directory: Path) -> dict[str, bytes]:
    """Every file with its contents."""
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def config(value: str | None, name: str = "log.retention.ms") -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name="", name=name, value=value)


def cluster_configs(image: MetadataImage) -> dict[str, str]:
    """The configs of the whole cluster that were set after its beginning."""
    return {
        name: value for name, value in image.broker_configs(None).items() if name != "min.insync.replicas"
    }


def contents(image: MetadataImage) -> object:
    return (
        {name: (topic.topic_id, topic.partitions) for name, topic in image.topics_by_name.items()},
        image.configs,
        image.features,
        image.next_producer_id,
        image.brokers,
    )


def test_new_directory_has_kafkas_files(tmp_path: Path) -> None:
    """The first start makes the files that a formatted and started Kafka has."""
    store = open_store(tmp_path)
    assert store.image.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "transaction.version": 2,
        "share.version": 1,
    }
    assert store.image.broker_configs(None) == {"min.insync.replicas": "1"}
    assert store.image.last_offset == store.next_offset - 1 == 8
    assert store.epoch == 1
    store.close(NOW_MS)
    names = set(files_of(tmp_path))
    assert names == {
        "meta.properties",
        "bootstrap.checkpoint",
        *(
            f"{LOG}/{name}"
            for name in (
                "00000000000000000000.log",
                "00000000000000000000.index",
                "00000000000000000000.timeindex",
                "leader-epoch-checkpoint",
                "partition.metadata",
                "quorum-state",
            )
        ),
    }
    assert (
        tmp_path / LOG / "partition.metadata"
    ).read_text() == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert (tmp_path / LOG / "leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"
    assert (tmp_path / LOG / "quorum-state").read_text() == (
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )


def test_restart_brings_everything_back_under_a_new_epoch(tmp_path: Path) -> None:
    """Identity, topics, configs and producer ids survive; each start leads a new epoch."""
    store = open_store(tmp_path, node_id=5)
    register(store)
    create_topic(store, "orders", 2, retention_ms="9")
    before, cluster_id, directory_ids = contents(store.image), store.cluster_id, store.directory_ids
    store.close(NOW_MS)
    again = open_store(tmp_path)
    assert (again.cluster_id, again.node_id, again.directory_ids) == (cluster_id, 5, directory_ids)
    assert contents(again.image) == before
    assert again.epoch == 2
    again.close(NOW_MS)
    assert (
        tmp_path / LOG / "leader-epoch-checkpoint"
    ).read_text() == f"0\n2\n1 0\n2 {again.image.last_offset}\n"


def test_change_is_visible_only_when_durable(tmp_path: Path) -> None:
    """Appended records reach the image after the flush, not before."""
    store = open_store(tmp_path)
    last = store.append([config("5")], NOW_MS)
    assert last == store.next_offset - 1
    assert store.apply_appended().changed_configs == {}
    store.flush()
    delta = store.apply_appended()
    assert list(delta.changed_configs) == [(4, "")]
    assert store.image.last_offset == last
    store.close(NOW_MS)


def test_what_was_not_flushed_may_still_come_back(tmp_path: Path) -> None:
    """Appended but not applied when the process dies: the batch is there or not, but never by halves."""
    store = open_store(tmp_path)
    store.append([config("5"), config("6", "log.retention.bytes")], NOW_MS)
    again = open_store(tmp_path)
    assert cluster_configs(again.image) == {"log.retention.ms": "5", "log.retention.bytes": "6"}
    again.close(NOW_MS)


def test_torn_tail_is_cut_at_every_length(tmp_path: Path) -> None:
    """A crash in the middle of a write loses that batch and nothing before it; then life goes on."""
    store = open_store(tmp_path / "whole")
    store.commit([config("1")], NOW_MS)
    path = tmp_path / "whole" / LOG / "00000000000000000000.log"
    kept = path.stat().st_size
    store.commit([config("2"), config("3", "log.retention.bytes")], NOW_MS)
    data = path.read_bytes()
    for length in range(kept, len(data)):
        path.write_bytes(data[:length])
        again = open_store(tmp_path / "whole")
        assert cluster_configs(again.image) == {"log.retention.ms": "1"}
        again.commit([config("4")], NOW_MS)
        again._log.release()
        last = open_store(tmp_path / "whole")
        assert cluster_configs(last.image) == {"log.retention.ms": "4"}
        last._log.release()


def test_garbage_after_the_last_batch_is_cut(tmp_path: Path) -> None:
    """Zeros, noise and a batch with a wrong CRC behind the valid ones."""
    store = open_store(tmp_path)
    store.commit([config("1")], NOW_MS)
    path = tmp_path / LOG / "00000000000000000000.log"
    data = path.read_bytes()
    store.close(NOW_MS)
    broken = bytearray(data[-80:])
    for garbage in (bytes(100), b"\xff" * 100, bytes(broken)):
        path.write_bytes(data + garbage)
        again = open_store(tmp_path)
        assert cluster_configs(again.image) == {"log.retention.ms": "1"}
        again._log.release()


def test_snapshots_bound_the_log(tmp_path: Path) -> None:
    """When the log has grown, a snapshot is due; old segments and snapshots go, and nothing is lost."""
    store = open_store(tmp_path, settings=SMALL)
    register(store)
    create_topic(store, "orders")
    written = 0
    for number in range(300):
        store.commit([config(str(number))], NOW_MS)
        if store.snapshot_due:
            store.write_snapshot(NOW_MS)
            written += 1
    assert written > 3
    log_directory = tmp_path / LOG
    assert len(list_snapshots(log_directory)) == 2
    assert len(list(log_directory.glob("*.log"))) <= 3
    assert not (log_directory / "00000000000000000000.log").exists()
    depart(store)
    again = open_store(tmp_path, settings=SMALL)
    assert cluster_configs(again.image) == {"log.retention.ms": "299"}
    assert again.image.topic_names() == ["orders"]
    again.commit([config("300")], NOW_MS)
    again.close(NOW_MS)


def test_half_written_snapshot_is_not_one(tmp_path: Path) -> None:
    """A snapshot that a crash left under its temporary name is ignored and removed."""
    store = open_store(tmp_path)
    store.commit([config("1")], NOW_MS)
    store.close(NOW_MS)
    part = tmp_path / LOG / "00000000000000000009-0000000001.checkpoint.part"
    part.write_bytes(b"half")
    again = open_store(tmp_path)
    assert cluster_configs(again.image) == {"log.retention.ms": "1"}
    assert not part.exists()
    again.close(NOW_MS)


def test_damaged_snapshot_is_named(tmp_path: Path) -> None:
    """A snapshot whose bytes changed is refused, with its path, and stays as it is."""
    store = open_store(tmp_path)
    snapshot = store.write_snapshot(NOW_MS)
    store.close(NOW_MS)
    path = tmp_path / LOG / snapshot.file_name
    data = bytearray(path.read_bytes())
    data[120] ^= 1
    path.write_bytes(data)
    before = files_of(tmp_path)
    with pytest.raises(MetadataError, match=f"{snapshot.file_name} is damaged"):
        open_store(tmp_path)
    assert files_of(tmp_path) == before


def test_log_behind_its_snapshot_starts_anew_there(tmp_path: Path) -> None:
    """A log that ends before the snapshot is replaced by an empty one that begins where the snapshot ends."""
    store = open_store(tmp_path)
    store.commit([config("1")], NOW_MS)
    store.close(NOW_MS)
    write_snapshot(
        tmp_path / LOG / SnapshotId(500, 9).file_name,
        [FeatureLevelRecord(name="metadata.version", feature_level=30), config("7")],
        epoch=9,
        last_contained_log_ms=0,
        now_ms=NOW_MS,
        metadata_version=30,
    )
    again = open_store(tmp_path)
    assert cluster_configs(again.image) == {"log.retention.ms": "7"}
    assert (again.epoch, again.next_offset) == (10, 501)
    again.close(NOW_MS)
    assert sorted(path.name for path in (tmp_path / LOG).glob("*.log")) == ["00000000000000000500.log"]


def test_unfinished_transaction_is_aborted(tmp_path: Path) -> None:
    """A log that ends inside a transaction goes on without it."""
    store = open_store(tmp_path)
    store.commit([BeginTransactionRecord(name="t"), TopicRecord(name="lost", topic_id=b"l" * 16)], NOW_MS)
    store.close(NOW_MS)
    again = open_store(tmp_path)
    assert again.image.topic_names() == []
    assert not again.image.in_transaction
    again.commit([TopicRecord(name="kept", topic_id=b"k" * 16)], NOW_MS)
    assert again.image.topic_names() == ["kept"]
    again.close(NOW_MS)


def test_formatted_directory_of_kafka_begins_with_its_bootstrap_records(tmp_path: Path) -> None:
    """Features from `kafka-storage format` are in force from the first start on."""
    store = open_store(tmp_path)
    meta = (tmp_path / "meta.properties").read_bytes()
    store.close(NOW_MS)
    formatted = tmp_path / "formatted"
    formatted.mkdir()
    (formatted / "meta.properties").write_bytes(meta)
    write_snapshot(
        formatted / "bootstrap.checkpoint",
        [
            FeatureLevelRecord(name="metadata.version", feature_level=21),
            FeatureLevelRecord(name="group.version", feature_level=1),
        ],
        epoch=0,
        last_contained_log_ms=0,
        now_ms=NOW_MS,
        metadata_version=21,
    )
    store = open_store(formatted)
    assert store.image.features == {"metadata.version": 21, "group.version": 1}
    store.close(NOW_MS)


def test_min_insync_replicas_of_a_new_cluster(tmp_path: Path) -> None:
    """With eligible leader replicas a new cluster has the setting of its first broker as a config of its own."""
    store = open_store(tmp_path, settings=MetadataSettings(min_insync_replicas=2))
    assert store.image.broker_configs(None) == {"min.insync.replicas": "2"}
    store.close(NOW_MS)
    again = open_store(tmp_path, settings=MetadataSettings(min_insync_replicas=3))
    assert again.image.broker_configs(None) == {"min.insync.replicas": "2"}
    again.close(NOW_MS)


def refuse(directory: Path, words: str) -> None:
    """Opening fails with this sentence and changes no file."""
    before = files_of(directory)
    with pytest.raises(MetadataError, match=words) as caught:
        open_store(directory)
    assert "\n" not in str(caught.value)
    assert files_of(directory) == before


def test_other_voters_are_refused(tmp_path: Path) -> None:
    """The directory of a member of a real quorum is left alone."""
    open_store(tmp_path).close(NOW_MS)
    path = tmp_path / LOG / "quorum-state"
    state = json.loads(path.read_text())
    state["currentVoters"] = [{"voterId": 1}, {"voterId": 2}, {"voterId": 3}]
    path.write_text(json.dumps(state))
    refuse(tmp_path, "controller quorum of nodes 1, 2, 3, which node 1 cannot lead alone")


def test_other_voters_of_a_dynamic_quorum_are_refused(tmp_path: Path) -> None:
    """Voters in a snapshot count as those in quorum-state do."""
    store = open_store(tmp_path)
    store.close(NOW_MS)
    write_snapshot(
        tmp_path / LOG / SnapshotId(9, 1).file_name,
        [FeatureLevelRecord(name="metadata.version", feature_level=30)],
        epoch=1,
        last_contained_log_ms=0,
        now_ms=NOW_MS,
        metadata_version=30,
        quorum=[KRaftVersionRecord(k_raft_version=1), VotersRecord(voters=[Voter(voter_id=8)])],
    )
    refuse(tmp_path, "quorum of nodes 8")


def test_other_active_brokers_are_refused(tmp_path: Path) -> None:
    """A directory of a cluster with more brokers is left alone."""
    store = open_store(tmp_path)
    store.commit(
        [
            RegisterBrokerRecord(broker_id=4, broker_epoch=4),
            BrokerRegistrationChangeRecord(broker_id=4, broker_epoch=4, fenced=-1),
        ],
        NOW_MS,
    )
    store.close(NOW_MS)
    refuse(tmp_path, "brokers 4 are active too")


def test_newer_metadata_version_is_refused(tmp_path: Path) -> None:
    """A directory that a newer Kafka upgraded is left alone."""
    store = open_store(tmp_path)
    store.commit([FeatureLevelRecord(name="metadata.version", feature_level=31)], NOW_MS)
    store.close(NOW_MS)
    refuse(tmp_path, "metadata.version 31, but only 7 to 30 are known")


def test_log_without_meta_properties_is_refused(tmp_path: Path) -> None:
    """A metadata log whose owner is unknown is left alone."""
    open_store(tmp_path).close(NOW_MS)
    (tmp_path / "meta.properties").unlink()
    refuse(tmp_path, "holds a metadata log, but no meta.properties")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"data_version":0}', '{"data_version":5,"leaderEpoch":1}'])
def test_unreadable_quorum_state_is_refused(tmp_path: Path, text: str) -> None:
    """The epoch must be known: without it two leaders could share one."""
    open_store(tmp_path).close(NOW_MS)
    (tmp_path / LOG / "quorum-state").write_text(text)
    refuse(tmp_path, "quorum-state")


def test_damage_before_the_last_segment_is_refused(tmp_path: Path) -> None:
    """Only the end of the log can be torn; a hole before it is not papered over."""
    store = open_store(tmp_path)
    store.commit([config("1")], NOW_MS)
    store._log.roll(NOW_MS)
    store.commit([config("2")], NOW_MS)
    store.close(NOW_MS)
    path = tmp_path / LOG / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-10])
    refuse(tmp_path, "is damaged: it ends at offset 9, but the next segment begins at 10")


@pytest.mark.parametrize("place", ["length", "magic", "payload"])
def test_damage_before_valid_batches_is_refused(tmp_path: Path, place: str) -> None:
    """A changed byte is no torn write: nothing is cut, and the sentence says where to look."""
    store = open_store(tmp_path)
    path = tmp_path / LOG / "00000000000000000000.log"
    begins = path.stat().st_size
    store.commit([config("1")], NOW_MS)
    store.commit([config("2")], NOW_MS)
    store.close(NOW_MS)
    data = bytearray(path.read_bytes())
    data[begins + {"length": 8, "magic": 16, "payload": 62}[place]] ^= 0x40
    path.write_bytes(data)
    refuse(tmp_path, f"is damaged at byte {begins} ")
    assert path.read_bytes() == data


def test_log_that_begins_later_needs_a_snapshot(tmp_path: Path) -> None:
    """Records below the first segment must be covered."""
    store = open_store(tmp_path)
    store._log.roll(NOW_MS)
    store.commit([config("2")], NOW_MS)
    store.close(NOW_MS)
    for path in (tmp_path / LOG).glob("00000000000000000000.*"):
        path.unlink()
    refuse(tmp_path, "begins at offset 9, but no snapshot covers what was before")


def test_several_log_directories(tmp_path: Path) -> None:
    """Each is marked; the metadata log lies in the first, or where metadata.log.dir says."""
    first, second, apart = tmp_path / "a", tmp_path / "b", tmp_path / "meta"
    store = open_store([first, second])
    assert set(store.directory_ids) == {first, second}
    assert (first / LOG).is_dir()
    assert not (second / LOG).exists()
    store.close(NOW_MS)
    store = open_store([tmp_path / "c"], metadata_directory=apart)
    assert (apart / LOG).is_dir()
    assert set(store.directory_ids) == {tmp_path / "c"}
    assert (apart / "meta.properties").exists()
    store.close(NOW_MS)


def test_too_large_a_batch_is_refused_before_it_is_written(tmp_path: Path) -> None:
    """Kafka's readers take batches of 8 MiB at most."""
    store = open_store(tmp_path)
    size = (tmp_path / LOG / "00000000000000000000.log").stat().st_size
    with pytest.raises(KafkaError) as caught:
        store.append([config("x" * 30_000, f"c{number}") for number in range(300)], NOW_MS)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    assert (tmp_path / LOG / "00000000000000000000.log").stat().st_size == size
    store.close(NOW_MS)


def test_snapshot_of_a_dynamic_quorum_keeps_its_voters(tmp_path: Path) -> None:
    """kraft.version and voters stand behind the header of every snapshot we write."""
    open_store(tmp_path).close(NOW_MS)
    quorum = [KRaftVersionRecord(k_raft_version=1), VotersRecord(voters=[Voter(voter_id=1)])]
    write_snapshot(
        tmp_path / LOG / SnapshotId(9, 1).file_name,
        [FeatureLevelRecord(name="metadata.version", feature_level=30)],
        epoch=1,
        last_contained_log_ms=0,
        now_ms=NOW_MS,
        metadata_version=30,
        quorum=quorum,
    )
    store = open_store(tmp_path)
    assert store.kraft_version == 1
    assert json.loads((tmp_path / LOG / "quorum-state").read_text())["data_version"] == 1
    snapshot = store.write_snapshot(NOW_MS)
    store.close(NOW_MS)
    [first, *_] = read_snapshot(tmp_path / LOG / snapshot.file_name)
    assert first.control == quorum


def test_growing_log_leaves_a_snapshot_when_closed(tmp_path: Path) -> None:
    """After a clean stop the next start has little to replay."""
    store = open_store(tmp_path)
    for number in range(10):
        store.commit([config("v" * 30_000, f"c{number}")], NOW_MS)
    store.close(NOW_MS)
    [snapshot] = list_snapshots(tmp_path / LOG)
    assert snapshot.end_offset == store.image.last_offset + 1
    again = open_store(tmp_path)
    assert again.image.broker_configs(None) == store.image.broker_configs(None)
    again.close(NOW_MS)


@pytest.mark.parametrize("level", [7, 14, 17, 21, 23, 29])
def test_older_metadata_versions_live_on(tmp_path: Path, level: int) -> None:
    """Everything planned and every snapshot can be written under the level that a Kafka left in force."""
    write_snapshot(
        tmp_path / "bootstrap.checkpoint",
        [FeatureLevelRecord(name="metadata.version", feature_level=level)],
        epoch=0,
        last_contained_log_ms=0,
        now_ms=NOW_MS,
        metadata_version=level,
    )
    store = open_store(tmp_path)
    register(store)
    create_topic(store, "orders", 2)
    store.write_snapshot(NOW_MS)
    depart(store)
    again = open_store(tmp_path)
    assert again.image.metadata_version == level
    register(again)
    assert again.image.topics_by_name["orders"].partitions[1].leader == 1
    again.close(NOW_MS)
