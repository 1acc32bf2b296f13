"""Topic and broker configs through kafka-python's admin client: describe, alter, and alter step by step."""

from collections.abc import Mapping
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from compat_tests.conftest import NewTopic
from compat_tests.eventually import eventually
from compat_tests.test_admin_topics import node_id

INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_TOPIC = 40, 42, 3

TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


def describe(
    admin: KafkaAdminClient, kind: str, name: str, keys: list[str] | None = None, **options: Any
) -> dict[str, Any]:
    """The configs of one resource, by name."""
    options.setdefault("config_filter", "all")
    answer = admin.describe_configs([ConfigResource(kind, name, keys)], **options)
    return dict(answer[kind.lower()][name])


def changed(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    """The configs set on the topic itself."""
    described = describe(admin, "TOPIC", topic, config_filter="modified")
    return {name: config["value"] for name, config in described.items()}


def alter(admin: KafkaAdminClient, kind: str, name: str, changes: Mapping[str, Any], **options: Any) -> str:
    """`OK`, or the client's words for the error."""
    resource = ConfigResource(kind, name, dict(changes))
    answer = admin.alter_configs([resource], raise_on_unknown=False, **options)
    return str(answer[kind.lower()][name])


def test_every_topic_config_has_kafkas_default(admin: KafkaAdminClient, topic_name: str) -> None:
    """All 33 names with Kafka's values; nothing is set on a plain topic."""
    admin.create_topics([topic_name], wait_for_metadata=True)
    described = describe(admin, "TOPIC", topic_name)
    assert {name: config["value"] for name, config in described.items()} == TOPIC_DEFAULTS
    assert {config["is_sensitive"] for config in described.values()} == {False}
    assert {config["read_only"] for config in described.values()} == {False}
    sources = {name: config["config_source"] for name, config in described.items()}
    # A config of the whole cluster since Kafka 4.1, because of eligible leader replicas (KIP-966).
    assert sources.pop("min.insync.replicas") == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert set(sources.values()) == {"DEFAULT_CONFIG"}


def test_synonyms_tell_where_a_value_comes_from(admin: KafkaAdminClient, new_topic: NewTopic) -> None:
    """Topic value first, then the broker's config of another name, then its default."""
    topic = new_topic(**{"max.message.bytes": "2000"})
    keys = ["max.message.bytes", "cleanup.policy"]
    described = describe(admin, "TOPIC", topic, keys, include_synonyms=True)
    assert sorted(described) == sorted(keys)
    assert described["max.message.bytes"] == {
        "value": "2000",
        "config_source": "DYNAMIC_TOPIC_CONFIG",
        "config_type": "INT",
        "is_sensitive": False,
        "read_only": False,
        "documentation": None,
        "synonyms": [
            {"name": "max.message.bytes", "value": "2000", "source": "DYNAMIC_TOPIC_CONFIG"},
            {"name": "message.max.bytes", "value": "1048588", "source": "DEFAULT_CONFIG"},
        ],
    }
    assert described["cleanup.policy"]["config_type"] == "LIST"
    assert described["cleanup.policy"]["synonyms"] == [
        {"name": "log.cleanup.policy", "value": "delete", "source": "DEFAULT_CONFIG"}
    ]


def test_incremental_changes(admin: KafkaAdminClient, new_topic: NewTopic) -> None:
    """Set, append, subtract and delete, each leaving the other configs alone."""
    topic = new_topic(**{"max.message.bytes": "2000"})
    steps: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({"segment.ms": "60000"}, {"segment.ms": "60000"}),
        ({"cleanup.policy": ("APPEND", "compact")}, {"cleanup.policy": "delete,compact"}),
        ({"cleanup.policy": ("APPEND", "compact")}, {"cleanup.policy": "delete,compact"}),
        ({"cleanup.policy": ("SUBTRACT", "delete")}, {"cleanup.policy": "compact"}),
        ({"segment.ms": "70000", "flush.ms": "5"}, {"segment.ms": "70000", "flush.ms": "5"}),
    ]
    expected = {"retention.ms": "-1", "max.message.bytes": "2000"}
    for changes, result in steps:
        assert alter(admin, "TOPIC", topic, changes) == "OK"
        expected |= result
        eventually(lambda: changed(admin, topic), expected)
    assert alter(admin, "TOPIC", topic, dict.fromkeys(expected, ("DELETE", None))) == "OK"
    eventually(lambda: changed(admin, topic), {})


def test_alter_configs_replaces_all(admin: KafkaAdminClient, new_topic: NewTopic) -> None:
    """The older request sets what it names; kafka-python adds what was set before, so it all stays."""
    topic = new_topic(**{"max.message.bytes": "2000"})
    assert alter(admin, "TOPIC", topic, {"segment.ms": "7000"}, incremental=False) == "OK"
    expected = {"retention.ms": "-1", "max.message.bytes": "2000", "segment.ms": "7000"}
    eventually(lambda: changed(admin, topic), expected)


def test_validate_only_changes_nothing(admin: KafkaAdminClient, new_topic: NewTopic) -> None:
    """A change that is only validated is answered and forgotten."""
    topic = new_topic()
    assert alter(admin, "TOPIC", topic, {"segment.ms": "7000"}, validate_only=True) == "OK"
    answer = alter(admin, "TOPIC", topic, {"segment.ms": "x"}, validate_only=True)
    assert answer.startswith(f"[Error {INVALID_CONFIG}]")
    assert changed(admin, topic) == {"retention.ms": "-1"}


@pytest.mark.parametrize(
    "changes",
    [
        {"retention.ms": "soon"},
        {"no.such.config": "1"},
        {"retention.ms": ("APPEND", "5")},
        {"cleanup.policy": "zip"},
        {"segment.bytes": "1"},
    ],
    ids=str,
)
def test_refused_changes(admin: KafkaAdminClient, new_topic: NewTopic, changes: dict[str, Any]) -> None:
    """What is not a value of the config is refused, and the good part of the same request with it."""
    topic = new_topic()
    answer = alter(admin, "TOPIC", topic, {"flush.ms": "5", **changes})
    assert answer.startswith(f"[Error {INVALID_CONFIG}]")
    assert changed(admin, topic) == {"retention.ms": "-1"}


def test_configs_of_an_unknown_topic(admin: KafkaAdminClient) -> None:
    """Nothing to describe and nothing to alter."""
    assert alter(admin, "TOPIC", "no-such-topic", {"flush.ms": "5"}).startswith(f"[Error {UNKNOWN_TOPIC}]")


def test_broker_configs(admin: KafkaAdminClient) -> None:
    """The broker describes its own configs; some can be changed while it runs, others not."""
    node = str(node_id(admin))
    keys = ["log.segment.bytes", "num.partitions", "message.max.bytes"]
    described = describe(admin, "BROKER", node, keys, include_synonyms=True)
    plain = {name: (config["value"], config["read_only"]) for name, config in described.items()}
    assert plain == {
        "log.segment.bytes": ("1073741824", False),
        "num.partitions": ("1", True),
        "message.max.bytes": ("1048588", False),
    }
    for fixed in ("num.partitions", "node.id"):
        answer = alter(admin, "BROKER", node, {fixed: "3"})
        assert answer.startswith(f"[Error {INVALID_REQUEST}]")


def test_dynamic_broker_config_shows_in_topics(admin: KafkaAdminClient, topic_name: str) -> None:
    """A dynamic broker config becomes the default of topics, and goes away again."""
    admin.create_topics([topic_name], wait_for_metadata=True)
    node = str(node_id(admin))

    def limit() -> tuple[str, str]:
        config = describe(admin, "TOPIC", topic_name, ["max.message.bytes"])["max.message.bytes"]
        return config["value"], config["config_source"]

    assert alter(admin, "BROKER", node, {"message.max.bytes": "1048000"}) == "OK"
    eventually(limit, ("1048000", "DYNAMIC_BROKER_CONFIG"))
    assert alter(admin, "BROKER", node, {"message.max.bytes": ("DELETE", None)}) == "OK"
    eventually(limit, ("1048588", "DEFAULT_CONFIG"))


def test_list_config_resources(admin: KafkaAdminClient, new_topic: NewTopic) -> None:
    """Every topic and the broker are listed as resources with configs."""
    topic = new_topic()
    assert topic in admin.list_config_resources(["TOPIC"])["topic"]
    assert admin.list_config_resources(["BROKER"]) == {"broker": [str(node_id(admin))]}
