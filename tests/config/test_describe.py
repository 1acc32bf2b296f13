"""DescribeConfigs says what Apache Kafka 4.3.0 said of the same broker, recorded in kafka_answers.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.config.broker_change import BrokerLayers
from ottla.config.broker_config import BrokerConfig
from ottla.config.describe import (
    ConfigEntry,
    ConfigSource,
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_loggers,
    describe_topic,
)
from tests.config.other_defaults import OTHER_DEFAULTS

# The properties of the Kafka that was asked. Some defaults differ by design.
STATIC = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.hours": "100",
}
OVERRIDES = {
    "retention.ms": "1000",
    "cleanup.policy": "compact,delete",
    "min.cleanable.dirty.ratio": "0.001",
    "compression.type": "lz4",
}
ANSWERS: dict[str, list[list[Any]]] = json.loads(
    Path(__file__).with_name("kafka_answers.json").read_text(encoding="utf-8")
)


def layers(default: dict[str, str] | None = None, broker: dict[str, str] | None = None) -> BrokerLayers:
    """The broker that was asked, with dynamic configs; a new Kafka has one for all brokers."""
    return BrokerLayers(BrokerConfig.load(STATIC), default or {"min.insync.replicas": "1"}, broker or {})


def as_recorded(entries: list[ConfigEntry]) -> list[list[Any]]:
    """Entries in the form of the recording."""
    return sorted(
        [
            entry.name,
            entry.value,
            entry.source,
            entry.read_only,
            entry.is_sensitive,
            entry.type,
            [[each.name, each.value, each.source] for each in entry.synonyms],
        ]
        for entry in entries
    )


def synonyms(entries: list[ConfigEntry]) -> list[tuple[str, str | None, ConfigSource]]:
    """The synonyms of the only entry."""
    (entry,) = entries
    return [(each.name, each.value, each.source) for each in entry.synonyms]


@pytest.mark.parametrize(
    ("resource", "entries"),
    [
        ("topic", describe_topic({}, layers())),
        ("topic with overrides", describe_topic(OVERRIDES, layers())),
        ("all brokers", describe_broker_defaults(layers())),
        ("group", describe_group({}, layers())),
        ("client metrics", describe_client_metrics({})),
    ],
)
def test_same_as_kafka(resource: str, entries: list[ConfigEntry]) -> None:
    """Every config of a resource: value, source, synonyms, type, and what may be changed or seen."""
    assert as_recorded(entries) == ANSWERS[resource]


def test_broker_same_as_kafka() -> None:
    """Every config of the broker, but for the defaults that differ on purpose."""
    expected = [row for row in ANSWERS["broker"] if row[0] not in OTHER_DEFAULTS]
    told = [row for row in as_recorded(describe_broker(layers())) if row[0] not in OTHER_DEFAULTS]
    assert told == expected


def test_dynamic_levels_of_a_topic() -> None:
    """The broker's own config hides that of all brokers, which hides the static one."""
    both = layers({"log.retention.ms": "888"}, {"log.retention.ms": "777"})
    below = [
        ("log.retention.ms", "777", ConfigSource.DYNAMIC_BROKER),
        ("log.retention.ms", "888", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "100", ConfigSource.STATIC_BROKER),
        ("log.retention.hours", "168", ConfigSource.DEFAULT),
    ]
    assert synonyms(describe_topic({}, both, ["retention.ms"])) == below
    assert synonyms(describe_topic({"retention.ms": "5"}, both, ["retention.ms"])) == [
        ("retention.ms", "5", ConfigSource.TOPIC),
        *below,
    ]


def test_hours_alone_have_no_synonyms_for_ms() -> None:
    """Kafka's oddity: the value is the static one, but it claims to be a default without synonyms."""
    (entry,) = describe_topic({}, layers(), ["retention.ms"])
    assert (entry.value, entry.source, entry.synonyms) == ("360000000", ConfigSource.DEFAULT, ())


def test_a_dynamic_ms_hides_static_hours() -> None:
    """Once log.retention.ms is set dynamically, log.retention.hours shows its default."""
    (entry,) = describe_broker(layers(broker={"log.retention.ms": "777"}), ["log.retention.hours"])
    assert (entry.value, entry.source) == ("168", ConfigSource.STATIC_BROKER)


def test_secrets_are_not_shown() -> None:
    """A password has no value, neither has a property that the table does not know."""
    secrets = {"ssl.key.password": "hidden", "super.users": "User:hidden"}
    given = BrokerLayers(BrokerConfig.load({**STATIC, **secrets}))
    entries = describe_broker(given, list(secrets))
    assert [entry.name for entry in entries] == list(secrets)
    assert all(entry.is_sensitive and entry.value is None for entry in entries)
    assert "hidden" not in repr(entries)


def test_internal_configs_are_shown_when_set() -> None:
    """An internal config is no secret once somebody set it."""
    assert describe_topic({}, layers(), ["internal.segment.bytes"]) == []
    (entry,) = describe_topic({"internal.segment.bytes": "9"}, layers(), ["internal.segment.bytes"])
    assert (entry.value, entry.source) == ("9", ConfigSource.TOPIC)


def test_dynamic_only_config() -> None:
    """A replication rate exists at the dynamic levels alone."""
    (entry,) = describe_broker(
        layers(broker={"leader.replication.throttled.rate": "10"}), ["leader.replication.throttled.rate"]
    )
    assert as_recorded([entry]) == [
        [
            "leader.replication.throttled.rate",
            "10",
            2,
            False,
            False,
            5,
            [["leader.replication.throttled.rate", "10", 2]],
        ]
    ]


def test_names_select() -> None:
    """Only the configs asked for are told, unknown names are passed over, no names mean all."""
    assert [each.name for each in describe_topic({}, layers(), ["segment.ms", "nope"])] == ["segment.ms"]
    assert len(describe_topic({}, layers(), [])) == 33


def test_groups_and_client_metrics_with_overrides() -> None:
    """An override is the first synonym, before the broker's."""
    assert synonyms(
        describe_group({"consumer.session.timeout.ms": "50000"}, layers(), ["consumer.session.timeout.ms"])
    ) == [
        ("consumer.session.timeout.ms", "50000", ConfigSource.GROUP),
        ("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT),
    ]
    assert synonyms(describe_client_metrics({"metrics": "*"}, ["metrics"])) == [
        ("metrics", "*", ConfigSource.CLIENT_METRICS)
    ]


def test_loggers() -> None:
    """A logger's level can be changed and has no type."""
    (entry,) = describe_loggers({"root": "INFO", "ottla.wire": "WARN"}, ["root"])
    assert as_recorded([entry]) == [["root", "INFO", 6, False, False, 0, []]]
