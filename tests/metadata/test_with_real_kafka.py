"""A metadata directory goes from Ottla to a real Kafka and back, and Kafka's tools find nothing wrong with it."""

from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from compat_tests.kafka.real import RealKafka
from compat_tests.kafka.tools import run_tool
from ottla.metadata.controller.producer_ids import plan_producer_id_block
from ottla.metadata.image import BROKER_RESOURCE
from ottla.metadata.records import ConfigRecord
from tests.metadata.directories import NOW_MS, create_topic, depart, open_store, register


def dump(path: Path) -> str:
    """What DumpLogSegments says of a file, with the decoder of cluster metadata."""
    done = run_tool(
        "org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(path)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ottlas_directory(directory: Path) -> None:
    """Everything that Ottla writes: two starts, topics, configs, producer ids, a snapshot in between."""
    store = open_store(directory)
    register(store)
    create_topic(store, "orders", 3, retention_ms="123456", cleanup_policy="compact")
    create_topic(store, "payments")
    store.commit(plan_producer_id_block(store.image, node_id=1).records, NOW_MS)
    store.write_snapshot(NOW_MS)
    depart(store)
    store = open_store(directory)
    register(store)
    record = ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name="", name="log.segment.bytes", value="2000000"
    )
    store.commit([record], NOW_MS)
    depart(store)


def test_dump_log_segments_reads_everything(tmp_path: Path) -> None:
    """The log, its snapshot and the bootstrap checkpoint are valid and mean what we wrote."""
    ottlas_directory(tmp_path)
    log_directory = tmp_path / "__cluster_metadata-0"
    [snapshot] = log_directory.glob("*.checkpoint")
    log = dump(log_directory / "00000000000000000000.log")
    assert "isvalid: false" not in log
    for kind in ("REGISTER_BROKER", "TOPIC", "PARTITION", "CONFIG", "PRODUCER_IDS", "PARTITION_CHANGE"):
        assert f'"type":"{kind}_RECORD"' in log
    assert log.count("LeaderChange") == 2
    snapshot_dump = dump(snapshot)
    assert "SnapshotHeader" in snapshot_dump
    assert "SnapshotFooter" in snapshot_dump
    assert '"name":"orders"' in snapshot_dump
    bootstrap = dump(tmp_path / "bootstrap.checkpoint")
    assert '"name":"metadata.version","featureLevel":30' in bootstrap
    for text in (snapshot_dump, bootstrap):
        assert "isvalid: false" not in text
    for index in ("index", "timeindex"):
        done = run_tool(
            "org.apache.kafka.tools.DumpLogSegments",
            "--index-sanity-check",
            "--files",
            str(log_directory / f"00000000000000000000.{index}"),
        )
        assert "passed sanity check" in done.stdout or "is empty" in done.stdout, done.stdout + done.stderr


def topics_of(kafka: RealKafka) -> dict[str, int]:
    """The topics that Kafka serves and how many partitions of each it leads."""
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    try:
        return {
            topic["name"]: sum(partition["leader_id"] == 1 for partition in topic["partitions"])
            for topic in admin.describe_topics()
        }
    finally:
        admin.close()


def test_directory_goes_to_kafka_and_back(tmp_path: Path) -> None:
    """Kafka sees Ottla's topics and configs; Ottla then sees what Kafka changed, and leads all of it again."""
    ottlas_directory(tmp_path)
    with RealKafka(tmp_path, {"metadata.log.max.record.bytes.between.snapshots": "1000"}) as kafka:
        assert topics_of(kafka) == {"orders": 3, "payments": 1}
        admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        try:
            admin.create_topics([NewTopic("from-kafka", 2, 1, topic_configs={"retention.ms": "777"})])
            admin.delete_topics(["payments"])
        finally:
            admin.close()
    store = open_store(tmp_path)
    assert store.image.topic_names() == ["from-kafka", "orders"]
    assert store.image.topic_configs("orders") == {"retention.ms": "123456", "cleanup.policy": "compact"}
    assert store.image.topic_configs("from-kafka") == {"retention.ms": "777"}
    assert store.image.broker_configs(None) == {"log.segment.bytes": "2000000", "min.insync.replicas": "1"}
    assert store.image.next_producer_id == 1000
    register(store)
    for topic in store.image.topics_by_name.values():
        for partition in topic.partitions.values():
            assert (partition.leader, partition.isr) == (1, (1,))
            assert partition.directories == tuple(store.directory_ids.values())
    depart(store)


class DynamicQuorumKafka(RealKafka):
    """A Kafka whose quorum of one stands in the log (kraft.version 1) instead of in its properties."""

    def _settings(self) -> dict[str, str]:
        settings = super()._settings()
        del settings["controller.quorum.voters"]
        settings["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{self.controller_port}"
        return settings

    format_options = ("--standalone",)


@pytest.mark.parametrize(
    "kafka_class", [RealKafka, DynamicQuorumKafka], ids=["static-quorum", "dynamic-quorum"]
)
def test_kafkas_own_directory_goes_to_ottla_and_back(tmp_path: Path, kafka_class: type[RealKafka]) -> None:
    """A directory that Kafka formatted, with all its features in force, is taken over and given back."""
    with kafka_class(tmp_path / "data") as kafka:
        admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        try:
            admin.create_topics([NewTopic("orders", 2, 1)])
        finally:
            admin.close()
        kafka.stop()
        store = open_store(kafka.data_dir)
        assert store.kraft_version == (kafka_class is DynamicQuorumKafka)
        assert store.image.features["transaction.version"] == 2
        register(store)
        assert [p.leader for p in store.image.topics_by_name["orders"].partitions.values()] == [1, 1]
        create_topic(store, "made-here")
        store.write_snapshot(NOW_MS)
        depart(store)
        log_directory = kafka.data_dir / "__cluster_metadata-0"
        for path in (log_directory / "00000000000000000000.log", max(log_directory.glob("*.checkpoint"))):
            assert "isvalid: false" not in dump(path)
        kafka.start()
        assert topics_of(kafka) == {"orders": 2, "made-here": 1}
