"""Kafka's own tools on groups: ConsumerGroupCommand, the console consumer, and what it reads in the offsets topic."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.clients import Message
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.conftest import NewTopic
from compat_tests.eventually import eventually
from compat_tests.kafka.tools import run_tool
from compat_tests.raw_client import RawClient
from compat_tests.raw_consumer_groups import RawConsumer
from compat_tests.raw_groups import (
    RawMember,
    commit_request,
    fetch_offset,
    subscription,
    wait_for_coordinator,
)

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTERS = "org.apache.kafka.tools.consumer"


def groups_tool(bootstrap: str, *arguments: str) -> str:
    done = run_tool(GROUPS, "--bootstrap-server", bootstrap, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def table(output: str) -> list[dict[str, str]]:
    """The rows of a table with a line of column names."""
    lines = [line.split() for line in output.splitlines() if line.strip()]
    header = next(line for line in lines if line[0] == "GROUP")
    rows = lines[lines.index(header) + 1 :]
    return [dict(zip(header, row, strict=False)) for row in rows]


@pytest.fixture
def member(bootstrap: str, new_topic: NewTopic, raw: RawClient) -> Iterator[RawMember]:
    """A member of a group of the name of its topic, with ten records there and three of them committed."""
    topic = new_topic(1)
    ConfluentClient().produce(bootstrap, topic, [Message(None, b"%d" % number) for number in range(10)])
    wait_for_coordinator(raw, topic)
    member = RawMember(bootstrap, topic, protocols={"range": subscription(topic)}, session_timeout_ms=60_000)
    member.join()
    assignment = subscription(topic)[:6] + len(topic).to_bytes(2, "big") + topic.encode()
    assignment += b"\0\0\0\1" + b"\0\0\0\0" + b"\xff\xff\xff\xff"
    member.sync({member.member_id: assignment})
    member.commit(topic, 0, 3, "note")
    yield member
    member.close()


def test_describe_and_reset(bootstrap: str, raw: RawClient, member: RawMember) -> None:
    """Lag, members and state are shown; offsets are reset once nobody is in the group, and deleted with it."""
    group_id = topic = member.group_id
    (row,) = table(groups_tool(bootstrap, "--describe", "--group", group_id))
    assert (row["TOPIC"], row["PARTITION"], row["CURRENT-OFFSET"], row["LAG"]) == (topic, "0", "3", "7")
    assert (row["CONSUMER-ID"], row["HOST"]) == (member.member_id, "/127.0.0.1")
    (row,) = table(groups_tool(bootstrap, "--describe", "--group", group_id, "--state"))
    assert (row["STATE"], row["#MEMBERS"]) == ("Stable", "1")
    member.leave()
    reset = ("--reset-offsets", "--group", group_id, "--topic", topic, "--to-offset", "8", "--execute")
    assert table(groups_tool(bootstrap, *reset))[0]["NEW-OFFSET"] == "8"
    assert fetch_offset(raw, group_id, topic, 0).committed_offset == 8
    groups_tool(bootstrap, "--delete-offsets", "--group", group_id, "--topic", topic)
    assert fetch_offset(raw, group_id, topic, 0).committed_offset == -1
    groups_tool(bootstrap, "--delete", "--group", group_id)
    assert group_id not in groups_tool(bootstrap, "--list").split()


def test_list_and_members(bootstrap: str, raw: RawClient, member: RawMember) -> None:
    """Both kinds of groups in the list, each with its members and their partitions; such groups are not deleted."""
    topic = member.group_id
    consumer = RawConsumer(raw, f"{topic}-consumer", "a-member", topic)
    wait_for_coordinator(raw, consumer.group_id)
    consumer.join()
    listed = groups_tool(bootstrap, "--list", "--state", "--type")
    ours = [line.split() for line in listed.splitlines() if topic in line]
    assert sorted(ours) == [[topic, "Classic", "Stable"], [consumer.group_id, "Consumer", "Stable"]]
    both = ("--group", topic, "--group", consumer.group_id)
    described = groups_tool(bootstrap, "--describe", "--members", "--verbose", *both)
    assert re.search(rf"{topic}\s+{member.member_id}\s.*{topic}:0", described), described
    assert re.search(rf"{consumer.group_id}\s+a-member\s.*{topic}:0", described), described
    refused = run_tool(GROUPS, "--bootstrap-server", bootstrap, "--delete", "--group", topic)
    assert "GroupNotEmptyException" in refused.stdout + refused.stderr
    consumer.leave()


def console_consumer(bootstrap: str, topic: str, *arguments: str) -> str:
    done = run_tool(
        CONSOLE_CONSUMER,
        *("--bootstrap-server", bootstrap, "--topic", topic, "--timeout-ms", "5000", "--from-beginning"),
        *arguments,
    )
    assert "Processed a total of" in done.stderr, done.stderr
    return done.stdout


def test_console_consumer_in_a_group(bootstrap: str, raw: RawClient, new_topic: NewTopic) -> None:
    """Java's consumer joins, reads, commits and leaves; the next one finds nothing left."""
    topic = new_topic(2)
    messages = [Message(None, b"%d" % number, partition=number % 2) for number in range(10)]
    ConfluentClient().produce(bootstrap, topic, messages)
    read = console_consumer(bootstrap, topic, "--group", f"{topic}-g", "--max-messages", "10")
    assert sorted(map(int, read.split())) == list(range(10))
    eventually(lambda: fetch_offset(raw, f"{topic}-g", topic, 0).committed_offset, 5)
    eventually(lambda: fetch_offset(raw, f"{topic}-g", topic, 1).committed_offset, 5)


def json_objects(text: str) -> list[Any]:
    """The formatters write one behind the other, without a line's end."""
    found = []
    decoder = json.JSONDecoder()
    position = 0
    while position < len(text.rstrip()):
        value, position = decoder.raw_decode(text, position)
        found.append(value)
    return found


@pytest.mark.parametrize("formatter", ["OffsetsMessageFormatter", "GroupMetadataMessageFormatter"])
def test_formatters(bootstrap: str, raw: RawClient, member: RawMember, formatter: str) -> None:
    """Kafka reads the records of the offsets topic as its own."""
    topic = member.group_id
    raw.send(commit_request(f"{topic}-simple", topic, 0, 5), 9)
    output = console_consumer(
        bootstrap,
        "__consumer_offsets",
        "--formatter",
        f"{FORMATTERS}.{formatter}",
        "--max-messages",
        "100000",
    )
    mine = [each for each in json_objects(output) if each["key"]["data"]["group"] == topic]
    if formatter == "OffsetsMessageFormatter":
        (record,) = mine
        assert record["key"] == {"type": 1, "data": {"group": topic, "topic": topic, "partition": 0}}
        assert (record["value"]["version"], record["value"]["data"]["offset"]) == (4, 3)
        assert record["value"]["data"]["metadata"] == "note"
    else:
        new, stable = mine
        assert (new["value"]["data"]["members"], new["value"]["data"]["generation"]) == ([], 0)
        data = stable["value"]["data"]
        assert (stable["value"]["version"], data["generation"], data["protocol"]) == (3, 1, "range")
        assert [each["memberId"] for each in data["members"]] == [member.member_id]
