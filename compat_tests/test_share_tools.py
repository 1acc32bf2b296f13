"""Kafka's own share consumer and its tool for share groups, and with them the Java clients, against both brokers."""

import re
import uuid

from compat_tests.broker_process import BrokerProcess
from compat_tests.clients import Message
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.conftest import NewTopic
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_share_groups import configure_group

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"


def test_share_consumer_and_its_tool(broker: BrokerProcess, raw: RawClient, new_topic: NewTopic) -> None:
    """Everything is delivered once and acknowledged; the tool shows it, moves the offsets, and deletes the group."""
    topic, group = new_topic(partitions=2), f"share-{uuid.uuid4().hex[:8]}"
    wait_for_coordinator(raw, group)
    configure_group(raw, group, share_auto_offset_reset="earliest")
    for partition in (0, 1):
        values = [b"m%d" % number for number in range(partition, 60, 2)]
        ConfluentClient().produce(
            broker.bootstrap, topic, [Message(None, value, partition=partition) for value in values]
        )
    consumed = broker.tool(
        CONSUMER, "--topic", topic, "--group", group, "--max-messages", "60", "--timeout-ms", "30000"
    )
    assert sorted(consumed.stdout.split()) == sorted(f"m{number}" for number in range(60)), consumed.stderr
    described = broker.tool(GROUPS, "--describe", "--group", group)
    rows = re.findall(rf"{group}\s+{topic}\s+(\d)\s+(\S+)\s+(\S+)", described.stdout)
    assert {(index, lag) for index, _, lag in rows} <= {("0", "0"), ("1", "0"), ("0", "-"), ("1", "-")}
    assert rows, described.stdout + described.stderr
    reset = broker.tool(
        GROUPS, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"
    )
    assert reset.returncode == 0, reset.stdout + reset.stderr
    again = broker.tool(
        CONSUMER, "--topic", topic, "--group", group, "--max-messages", "60", "--timeout-ms", "30000"
    )
    assert len(set(again.stdout.split())) == 60, again.stderr
    deleted = broker.tool(GROUPS, "--delete", "--group", group)
    assert "was successful" in deleted.stdout, deleted.stdout + deleted.stderr
    assert group not in broker.tool(GROUPS, "--list").stdout.split()
