"""Configs request by request: what is refused and in which words, every entry with its facts, on both brokers."""

import time
from typing import Any

import pytest

from compat_tests.conftest import NewTopic
from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic
from ottla.config.broker import BROKER_CONFIGS
from ottla.config.definition import UpdateMode
from ottla.config.topics import TOPIC_CONFIGS
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import alter_configs as legacy
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
INVALID_TOPIC, UNSUPPORTED_VERSION, INVALID_CONFIG, INVALID_REQUEST = 17, 35, 40, 42
BROKER_ID = "1"


def describe(
    raw: RawClient, resource_type: int, name: str, keys: list[str] | None = None, version: int = 4
) -> Any:
    """The result for one resource, with synonyms."""
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=True, include_documentation=version >= 3
    )
    (result,) = raw.send(request, version).results
    return result


def value(raw: RawClient, resource_type: int, name: str, key: str) -> tuple[str, int]:
    """Value and source of one config."""
    (entry,) = describe(raw, resource_type, name, [key]).configs
    return entry.value, entry.config_source


def change(
    raw: RawClient, resource_type: int, name: str, *changes: tuple[str, int, str | None], version: int = 1
) -> tuple[int, str | None]:
    """Code and message for an incremental change."""
    configs = [
        AlterableConfig(name=key, config_operation=operation, value=text) for key, operation, text in changes
    ]
    resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)
    (result,) = raw.send(IncrementalAlterConfigsRequest(resources=[resource]), version).responses
    return result.error_code, result.error_message


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_topic_entries(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    """Every topic config is there in every version, with its type and words where the version has them."""
    topic = new_topic()
    eventually(lambda: describe(raw, TOPIC, topic).error_code, 0)
    result = describe(raw, TOPIC, topic, version=version)
    entries = {entry.name: entry for entry in result.configs}
    table = {name: row for name, row in TOPIC_CONFIGS.items() if not row.internal}
    assert entries.keys() == table.keys()
    for name, row in table.items():
        entry = entries[name]
        assert (entry.read_only, entry.is_sensitive) == (False, False)
        assert entry.config_type == (row.type if version >= 3 else 0)
        assert bool(entry.documentation) == (version >= 3)


def test_broker_entries(raw: RawClient) -> None:
    """Every broker config with its type, and whether it can be changed or seen."""
    entries = {entry.name: entry for entry in describe(raw, BROKER, BROKER_ID).configs}
    table = {name: row for name, row in BROKER_CONFIGS.items() if not row.internal}
    assert entries.keys() == table.keys()
    for name, row in table.items():
        entry = entries[name]
        facts = (entry.config_type, entry.is_sensitive, entry.read_only)
        assert facts == (row.type, row.is_sensitive, row.mode is UpdateMode.READ_ONLY), name


@pytest.mark.parametrize(
    ("resource_type", "name", "code", "said"),
    [
        (TOPIC, "", INVALID_TOPIC, "Topic name is invalid: the empty string is not allowed"),
        (
            BROKER,
            "2",
            INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (BROKER, "x", INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (LOGGER, "", INVALID_REQUEST, "Broker id must not be empty"),
        (CLIENT_METRICS, "", INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (GROUP, "", INVALID_REQUEST, "Group name must not be empty"),
    ],
)
def test_describe_refused(raw: RawClient, resource_type: int, name: str, code: int, said: str) -> None:
    """What cannot be described."""
    result = describe(raw, resource_type, name)
    assert (result.error_code, result.error_message, result.configs) == (code, said, [])


@pytest.mark.parametrize(
    ("resource_type", "name", "change_of", "code", "said"),
    [
        (TOPIC, "", ("retention.ms", SET, "9"), INVALID_REQUEST, "Default topic resources are not allowed."),
        (
            BROKER,
            BROKER_ID,
            ("num.partitions", SET, "4"),
            INVALID_REQUEST,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            BROKER,
            BROKER_ID,
            ("log.retention.ms", SET, "x"),
            INVALID_REQUEST,
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            BROKER,
            BROKER_ID,
            ("log.roll.ms", SET, "0"),
            INVALID_REQUEST,
            "requirement failed: log.roll.ms must be greater than or equal to 1",
        ),
        (
            BROKER,
            "",
            ("listeners", SET, "PLAINTEXT://:1"),
            INVALID_REQUEST,
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
        ),
        (
            BROKER,
            BROKER_ID,
            ("ssl.keystore.location", SET, "x"),
            INVALID_REQUEST,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.location]",
        ),
        (
            BROKER,
            BROKER_ID,
            ("log.retention.ms", APPEND, "1"),
            INVALID_CONFIG,
            "Config value append is not allowed for config key: log.retention.ms",
        ),
        (BROKER, BROKER_ID, ("log.retention.ms", 9, "1"), INVALID_REQUEST, "Unknown operations type 9"),
        (
            BROKER,
            "2",
            ("log.retention.ms", SET, "1"),
            INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (
            GROUP,
            "g",
            ("consumer.session.timeout.ms", SET, "1"),
            INVALID_CONFIG,
            "consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            CLIENT_METRICS,
            "m",
            ("interval.ms", SET, "1"),
            INVALID_REQUEST,
            "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (LOGGER, BROKER_ID, ("nosuch", SET, "INFO"), INVALID_CONFIG, "Logger nosuch does not exist!"),
        (77, "x", ("a", SET, "b"), INVALID_REQUEST, "Unknown resource type 77"),
    ],
)
def test_change_refused(
    raw: RawClient, resource_type: int, name: str, change_of: tuple[str, int, str], code: int, said: str
) -> None:
    """What cannot be changed."""
    assert change(raw, resource_type, name, change_of) == (code, said)


def test_lists_grow_and_shrink(raw: RawClient, new_topic: NewTopic) -> None:
    """Append and subtract begin with the default; version 0 does it as well."""
    topic = new_topic()
    assert change(raw, TOPIC, topic, ("cleanup.policy", APPEND, "compact"), version=0) == (0, None)
    eventually(lambda: value(raw, TOPIC, topic, "cleanup.policy"), ("delete,compact", 1))
    assert change(raw, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")) == (0, None)
    eventually(lambda: value(raw, TOPIC, topic, "cleanup.policy"), ("compact", 1))
    assert change(raw, TOPIC, topic, ("cleanup.policy", SUBTRACT, "compact")) == (0, None)
    eventually(lambda: value(raw, TOPIC, topic, "cleanup.policy"), ("", 1))
    assert change(raw, TOPIC, topic, ("cleanup.policy", DELETE, None)) == (0, None)
    eventually(lambda: value(raw, TOPIC, topic, "cleanup.policy"), ("delete", 5))


def test_broker_levels(raw: RawClient) -> None:
    """One broker's dynamic config hides that of all, which hides the default."""
    name = "log.cleaner.backoff.ms"
    assert change(raw, BROKER, "", (name, SET, "16000")) == (0, None)
    assert change(raw, BROKER, BROKER_ID, (name, SET, "17000")) == (0, None)

    def synonyms() -> list[tuple[str, int]]:
        (entry,) = describe(raw, BROKER, BROKER_ID, [name]).configs
        return [(each.value, each.source) for each in entry.synonyms]

    eventually(synonyms, [("17000", 2), ("16000", 3), ("15000", 5)])
    eventually(lambda: value(raw, BROKER, "", name), ("16000", 3))
    assert change(raw, BROKER, BROKER_ID, (name, DELETE, None)) == (0, None)
    assert change(raw, BROKER, "", (name, DELETE, None)) == (0, None)
    eventually(synonyms, [("15000", 5)])


def test_legacy_alter_refuses(raw: RawClient) -> None:
    """AlterConfigs knows no loggers."""
    resource = legacy.AlterConfigsResource(
        resource_type=LOGGER, resource_name=BROKER_ID, configs=[legacy.AlterableConfig(name="a", value="b")]
    )
    (result,) = raw.send(legacy.AlterConfigsRequest(resources=[resource]), 2).responses
    assert (result.error_code, result.error_message) == (INVALID_REQUEST, "Unknown resource type 8")


def test_client_metrics_are_listed(raw: RawClient, topic_name: str) -> None:
    """A subscription is listed, in version 0 too, while it has configs."""

    def listed(version: int) -> bool:
        answer = raw.send(ListConfigResourcesRequest(), version)
        return topic_name in {
            each.resource_name for each in answer.config_resources if each.resource_type == CLIENT_METRICS
        }

    assert change(raw, CLIENT_METRICS, topic_name, ("metrics", SET, "*")) == (0, None)
    eventually(lambda: (listed(0), listed(1)), (True, True))
    assert change(raw, CLIENT_METRICS, topic_name, ("metrics", DELETE, None)) == (0, None)
    eventually(lambda: (listed(0), listed(1)), (False, False))


def test_list_of_an_unknown_type(raw: RawClient) -> None:
    """Refused as a version that is not supported."""
    answer = raw.send(ListConfigResourcesRequest(resource_types=[TOPIC, 99]), 1)
    assert (answer.error_code, answer.config_resources) == (UNSUPPORTED_VERSION, [])


def test_changes_take_effect(raw: RawClient, topic_name: str) -> None:
    """The log goes by a config of the topic, then of this broker, then of all, without a restart."""
    create_topic(raw, topic_name)
    now_ms = time.time_ns() // 1_000_000
    batch = build_batch([Record(0, now_ms, b"key", bytes(1000), ())])

    def appended() -> bool:
        data = TopicProduceData(
            name=topic_name, partition_data=[PartitionProduceData(index=0, records=batch)]
        )
        (answer,) = raw.send(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9).responses
        code = answer.partition_responses[0].error_code
        assert code in (ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE)
        return bool(code == ErrorCode.NONE)

    name = "message.max.bytes"
    try:
        assert change(raw, BROKER, "", (name, SET, "400")) == (0, None)
        eventually(appended, False)
        assert change(raw, BROKER, BROKER_ID, (name, SET, "5000")) == (0, None)
        eventually(appended, True)
        assert change(raw, TOPIC, topic_name, ("max.message.bytes", SET, "500")) == (0, None)
        eventually(appended, False)
        assert change(raw, TOPIC, topic_name, ("max.message.bytes", DELETE, None)) == (0, None)
        eventually(appended, True)
    finally:
        for level in (BROKER_ID, ""):
            change(raw, BROKER, level, (name, DELETE, None))
    eventually(lambda: value(raw, TOPIC, topic_name, "max.message.bytes"), ("1048588", 5))
