"""A directory that Apache Kafka filled with all it has: Ottla reads it equal, goes on, and Kafka reads that equal."""

from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from compat_tests.broker_process import BrokerProcess
from compat_tests.eventually import eventually
from compat_tests.kafka.real import RealKafka
from compat_tests.ottla_process import OttlaProcess

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = ("codecs", "transactions", "compacted", "shortened")
GROUP = "readers"
# Kafka compacts at once what it may, so that Ottla finds holes in the offsets.
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.bytes": "1048576",
    "delete.retention.ms": "1",
}
KAFKA_SETTINGS = {"node.id": "1", "log.cleaner.backoff.ms": "200"}


def create_topics(broker: BrokerProcess) -> None:
    """Topics with configs of their own; one is changed afterwards."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    configs: dict[str, dict[str, str]] = {"compacted": COMPACTED, "codecs": {"max.message.bytes": "2000000"}}
    wanted = [NewTopic(name, 2, 1, config={"retention.ms": "-1", **configs.get(name, {})}) for name in TOPICS]
    for future in admin.create_topics(wanted).values():
        future.result(30)
    resource = ConfigResource(
        ResourceType.TOPIC,
        "shortened",
        incremental_configs=[
            ConfigEntry("segment.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin.incremental_alter_configs([resource])[resource].result(30)


def produce(broker: BrokerProcess, topic: str, count: int, value: bytes, **settings: Any) -> None:
    """Records with keys that come again, to both partitions."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20, **settings})
    for number in range(count):
        producer.produce(topic, key=b"%d" % (number % 7), value=value, partition=number % 2)
    assert producer.flush(60) == 0


def fill(broker: BrokerProcess, *, transactions: bool) -> None:
    """Every codec, idempotent and not, transactions kept and given up, keys again and again, tombstones, offsets."""
    name = broker.name.encode()
    for codec in CODECS:
        settings = {"compression.type": codec, "enable.idempotence": codec == "lz4"}
        produce(broker, "codecs", 40, name + codec.encode(), **settings)
    if transactions:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "exchange"})
        producer.init_transactions(60)
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for number in range(10):
                producer.produce("transactions", value=b"%s %d" % (name, number), partition=number % 2)
            assert producer.flush(60) == 0  # an abort would drop what was not sent
            end(60)
    else:
        produce(broker, "transactions", 10, name)
    for size in (20_000, 20_001):
        produce(broker, "compacted", 140, name * (size // len(name)))
    produce(broker, "compacted", 2, b"")
    produce(broker, "shortened", 20, name)
    commit(broker)


def commit(broker: BrokerProcess) -> None:
    """A group notes how far it has come."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": GROUP, "enable.auto.commit": False}
    )
    reached = [
        TopicPartition("codecs", index, high_watermark(consumer, "codecs", index) - 3, f"by {broker.name}")
        for index in (0, 1)
    ]

    def is_committed() -> bool:
        try:
            consumer.commit(offsets=reached, asynchronous=False)
        except KafkaException:
            return False  # Kafka's coordinator is not ready in its first moments
        return True

    eventually(is_committed, True)
    consumer.close()


def high_watermark(consumer: Consumer, topic: str, index: int) -> int:
    return int(consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=30)[1])


def shorten(broker: BrokerProcess) -> None:
    """Delete the first records of a topic."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition("shortened", 0, 4)]).values():
        future.result(30)


def read(broker: BrokerProcess, topic: str, index: int, isolation: str) -> list[tuple[object, ...]]:
    """Every record of a partition as a consumer sees it."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "exchange-reader",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    low, _ = consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=30)
    consumer.assign([TopicPartition(topic, index, low)])
    records: list[tuple[object, ...]] = []
    while True:
        message = consumer.poll(30)
        assert message is not None, f"{topic}-{index} does not end"
        if message.error():
            break
        records.append(
            (message.offset(), message.key(), message.value(), message.timestamp(), message.headers())
        )
    consumer.close()
    return records


def committed(broker: BrokerProcess) -> list[tuple[int, int, str | None]]:
    """The group's offsets."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = [ConsumerGroupTopicPartitions(GROUP, [TopicPartition("codecs", index) for index in (0, 1)])]
    found = admin.list_consumer_group_offsets(asked)[GROUP].result(30).topic_partitions
    return sorted((each.partition, each.offset, each.metadata or None) for each in found)


def serves_all(broker: BrokerProcess) -> bool:
    """Whether every partition is led and the group's coordinator has read its offsets."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "exchange-reader"})
    try:
        for topic in TOPICS:
            for index in (0, 1):
                high_watermark(consumer, topic, index)
        committed(broker)
    except KafkaException:
        return False
    finally:
        consumer.close()
    return True


def seen(broker: BrokerProcess) -> dict[str, Any]:
    """All that clients can see of the data."""
    eventually(lambda: serves_all(broker), True)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    state: dict[str, Any] = {"committed": committed(broker)}
    for topic in TOPICS:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        configs = admin.describe_configs([resource])[resource].result(30)
        state[f"{topic} configs"] = {name: entry.value for name, entry in configs.items()}
        for index in (0, 1):
            for isolation in ("read_committed", "read_uncommitted"):
                state[f"{topic}-{index} {isolation}"] = read(broker, topic, index, isolation)
    return state


def latest_of_each_key(state: dict[str, Any]) -> dict[object, object]:
    """What compaction must keep of the compacted topic."""
    return {
        (index, record[1]): record[:3]
        for index in (0, 1)
        for record in state[f"compacted-{index} read_committed"]
    }


def without_compacted(state: dict[str, Any]) -> dict[str, Any]:
    """Compaction may go on between two looks: the compacted topic is compared by its latest values."""
    return {name: value for name, value in state.items() if not name.startswith("compacted-")}


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert without_compacted(found) == without_compacted(expected)
    assert latest_of_each_key(found) == latest_of_each_key(expected)


def test_ottla_goes_on_where_kafka_stopped_and_back(tmp_path: Path) -> None:
    """Configs, codecs, idempotent, transactional, compacted and deleted records and group offsets, all equal."""
    data_dir = tmp_path / "data"
    with RealKafka(data_dir, KAFKA_SETTINGS) as kafka:
        create_topics(kafka)
        fill(kafka, transactions=True)
        shorten(kafka)
        by_kafka = seen(kafka)
        kafka.stop()
    committed_records = sum(len(by_kafka[f"transactions-{index} read_committed"]) for index in (0, 1))
    all_records = sum(len(by_kafka[f"transactions-{index} read_uncommitted"]) for index in (0, 1))
    assert (committed_records, all_records) == (20, 30)
    assert by_kafka["shortened-0 read_committed"][0][0] == 4

    with OttlaProcess(data_dir) as ottla:
        assert_same(seen(ottla), by_kafka)
        fill(ottla, transactions=False)
        by_ottla = seen(ottla)
        assert ottla.stop() == 0
    assert by_ottla["committed"] != by_kafka["committed"]

    with RealKafka(data_dir, KAFKA_SETTINGS) as kafka:
        assert_same(seen(kafka), by_ottla)
        fill(kafka, transactions=True)
        kafka.stop()
