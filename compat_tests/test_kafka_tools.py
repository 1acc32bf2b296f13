"""Kafka's own command-line tools, and with them the Java clients, against both brokers.

Each call starts a JVM, so few calls look at much.
"""

import re
import subprocess

from compat_tests.broker_process import BrokerProcess
from compat_tests.clients import Message
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.conftest import NewTopic
from compat_tests.kafka.tools import run_tool

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"


def printed(done: "subprocess.CompletedProcess[str]") -> str:
    """Its output, if it succeeded."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_topic_command(broker: BrokerProcess, topic_name: str) -> None:
    """Create, describe, alter, list and delete."""
    created = broker.tool(
        TOPICS, "--create", "--topic", topic_name, "--partitions", "2", "--config", "max.message.bytes=5000"
    )
    assert f"Created topic {topic_name}." in printed(created)
    again = broker.tool(TOPICS, "--create", "--topic", topic_name)
    assert again.returncode == 1
    assert "TopicExistsException" in again.stdout + again.stderr
    described = printed(broker.tool(TOPICS, "--describe", "--topic", topic_name))
    assert re.search(
        r"PartitionCount: 2\s+ReplicationFactor: 1\s+Configs: .*max.message.bytes=5000", described
    )
    assert re.search(
        rf"Topic: {topic_name}\s+Partition: 1\s+Leader: (\d+)\s+Replicas: \1\s+Isr: \1", described
    )
    printed(broker.tool(TOPICS, "--alter", "--topic", topic_name, "--partitions", "3"))
    assert topic_name in printed(broker.tool(TOPICS, "--list")).splitlines()
    printed(broker.tool(TOPICS, "--delete", "--topic", topic_name))


def test_config_command(broker: BrokerProcess, new_topic: NewTopic) -> None:
    """Alter and describe a topic's configs."""
    topic = new_topic()
    entity = ("--entity-type", "topics", "--entity-name", topic)
    change = "cleanup.policy=[compact,delete],segment.ms=60000"
    assert "Completed updating config" in printed(
        broker.tool(CONFIGS, *entity, "--alter", "--add-config", change)
    )
    described = printed(broker.tool(CONFIGS, *entity, "--describe"))
    assert "segment.ms=60000 sensitive=false" in described
    assert "cleanup.policy=compact,delete sensitive=false" in described


def test_producer_performance_and_offsets(broker: BrokerProcess, new_topic: NewTopic) -> None:
    """The Java producer (idempotent by default) writes; offsets and directory sizes tell of it."""
    topic = new_topic(partitions=2)
    sizes = ("--num-records", "20000", "--record-size", "200", "--throughput", "-1")
    settings = (f"bootstrap.servers={broker.bootstrap}", "compression.type=lz4", "acks=all")
    done = run_tool(PERFORMANCE, "--topic", topic, *sizes, "--producer-props", *settings)
    assert "20000 records sent" in printed(done)
    lines = printed(broker.tool(OFFSETS, "--topic", topic)).split()
    counts = [int(line.rpartition(":")[2]) for line in sorted(lines)]
    assert [line.rpartition(":")[0] for line in sorted(lines)] == [f"{topic}:0", f"{topic}:1"]
    assert sum(counts) == 20000
    assert [ConfluentClient().watermarks(broker.bootstrap, topic, p)[1] for p in (0, 1)] == counts
    directories = printed(broker.tool(LOG_DIRS, "--describe", "--topic-list", topic))
    assert f'"partition":"{topic}-1"' in directories
    assert f'"error":null,"logDir":"{broker.data_dir}"' in directories


def test_console_producer(broker: BrokerProcess, new_topic: NewTopic) -> None:
    """Lines typed into the console producer become records with keys."""
    topic = new_topic()
    options = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    printed(broker.tool(CONSOLE_PRODUCER, "--topic", topic, *options, stdin="a:1\nb:2\n"))
    stored = ConfluentClient().read(broker.bootstrap, topic)
    assert [(record.key, record.value) for record in stored] == [(b"a", b"1"), (b"b", b"2")]


def test_java_consumer(broker: BrokerProcess, new_topic: NewTopic) -> None:
    """The Java consumer reads an assigned partition from the beginning."""
    topic = new_topic()
    ConfluentClient().produce(
        broker.bootstrap, topic, [Message(None, b"%d" % n) for n in range(5)], codec="zstd"
    )
    options = ("--partition", "0", "--offset", "earliest", "--max-messages", "5", "--timeout-ms", "20000")
    done = broker.tool("org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", topic, *options)
    assert printed(done).split() == ["0", "1", "2", "3", "4"]
