"""One data directory, two brokers in turns: Apache Kafka goes on where Ottla stopped, and back again."""

import itertools
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from compat_tests.broker_process import BrokerProcess
from compat_tests.clients import CLIENTS, Message
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.eventually import eventually
from compat_tests.kafka.real import RealKafka
from compat_tests.ottla_process import OttlaProcess

TOPIC = "exchanged"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def write(broker: BrokerProcess) -> None:
    """100 records with every codec, by one client or another, some of them idempotent."""
    for client, codec in zip(itertools.cycle(CLIENTS), CODECS, strict=False):
        value = f"{broker.name} {client.name} {codec}".encode()
        messages = [Message(b"%d" % n, value, (("n", b"%d" % n),), partition=n % 2) for n in range(20)]
        client.produce(broker.bootstrap, TOPIC, messages, codec=codec, idempotent=codec == "zstd")


def leads(broker: BrokerProcess) -> bool:
    """Whether it serves the partitions: Kafka answers a moment before it leads what it found on disk."""
    try:
        for partition in (0, 1):
            ConfluentClient().watermarks(broker.bootstrap, TOPIC, partition)
    except KafkaException as error:
        if error.args[0].name() != "NOT_LEADER_FOR_PARTITION":
            raise
        return False
    return True


def seen(broker: BrokerProcess) -> dict[str, Any]:
    """What a client can see of the topic: its identity, configs, offsets and records."""
    eventually(lambda: leads(broker), True)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    [topic] = admin.describe_topics([TOPIC])
    configs = admin.describe_configs([ConfigResource("TOPIC", TOPIC)])["topic"][TOPIC]
    cluster = admin.describe_cluster()
    admin.close()
    client = ConfluentClient()
    return {
        "cluster": cluster["cluster_id"],
        "topic id": topic["topic_id"],
        "configs": {name: config["value"] for name, config in configs.items()},
        "watermarks": [client.watermarks(broker.bootstrap, TOPIC, partition) for partition in (0, 1)],
        "records": [client.read(broker.bootstrap, TOPIC, partition) for partition in (0, 1)],
    }


def test_kafka_goes_on_where_ottla_stopped_and_back(tmp_path: Path) -> None:
    """Topics, ids, configs and every record pass from broker to broker and none is lost on the way."""
    data_dir = tmp_path / "data"
    with OttlaProcess(data_dir) as ottla:
        admin = KafkaAdminClient(bootstrap_servers=ottla.bootstrap)
        node = admin.describe_cluster()["controller_id"]
        wanted = {"num_partitions": 2, "configs": {"segment.bytes": "1048576", "retention.ms": "-1"}}
        admin.create_topics({TOPIC: wanted}, wait_for_metadata=True)
        admin.close()
        write(ottla)
        by_ottla = seen(ottla)
        assert ottla.stop() == 0
    assert by_ottla["watermarks"] == [(0, 50), (0, 50)]

    with RealKafka(data_dir, {"node.id": str(node)}) as kafka:
        assert seen(kafka) == by_ottla
        write(kafka)
        by_kafka = seen(kafka)
        kafka.stop()
    assert by_kafka["watermarks"] == [(0, 100), (0, 100)]

    with OttlaProcess(data_dir) as ottla:
        assert seen(ottla) == by_kafka
        write(ottla)
        assert seen(ottla)["watermarks"] == [(0, 150), (0, 150)]
        assert ottla.stop() == 0
