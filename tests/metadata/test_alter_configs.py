"""AlterConfigs and IncrementalAlterConfigs: answers are those that a real Kafka 4.3.0 gave to the same requests."""

from typing import Any

import pytest

from ottla.metadata.controller.alter_configs import plan_alter_configs, plan_incremental_alter_configs
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import ClearElrRecord, ConfigRecord
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import alter_configs, incremental_alter_configs
from tests.metadata.images import broker_config, running_image, topic_config, topic_records

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER = 2, 4

Operation = tuple[str, int, str | None]
Answer = tuple[int, str | None]


def image_with_topic(**configs: str) -> MetadataImage:
    records = [topic_config("orders", name.replace("_", "."), value) for name, value in configs.items()]
    return running_image(*topic_records("orders"), *records)


def incremental(
    image: MetadataImage, *resources: tuple[int, str, list[Operation]], validate_only: bool = False
) -> Any:
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(
                        name=key, config_operation=operation, value=value
                    )
                    for key, operation, value in configs
                ],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    return plan_incremental_alter_configs(image, request, node_id=1, config=broker_config())


def replace_all(
    image: MetadataImage,
    *resources: tuple[int, str, list[tuple[str, str | None]]],
    validate_only: bool = False,
) -> Any:
    request = alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in configs],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    return plan_alter_configs(image, request, node_id=1, config=broker_config())


def answers(made: Any) -> list[Answer]:
    return [(response.error_code, response.error_message) for response in made.results.responses]


def applied(image: MetadataImage, made: Any, key: tuple[int, str] = (TOPIC, "orders")) -> dict[str, str]:
    image.apply_all(made.records, 99)
    return image.configs.get(key, {})


@pytest.mark.parametrize(
    ("operations", "after"),
    [
        ([("retention.ms", SET, "9")], {"retention.ms": "9", "cleanup.policy": "compact"}),
        ([("retention.ms", DELETE, None)], {"cleanup.policy": "compact"}),
        ([("segment.ms", DELETE, None)], {"retention.ms": "5", "cleanup.policy": "compact"}),
        ([("cleanup.policy", APPEND, "delete")], {"retention.ms": "5", "cleanup.policy": "compact,delete"}),
        ([("cleanup.policy", APPEND, "compact")], {"retention.ms": "5", "cleanup.policy": "compact"}),
        (
            [("cleanup.policy", APPEND, "delete"), ("retention.ms", SET, "6")],
            {"retention.ms": "6", "cleanup.policy": "compact,delete"},
        ),
    ],
)
def test_topic_configs_change_step_by_step(operations: list[Operation], after: dict[str, str]) -> None:
    """Set, delete, append and subtract on a topic that has configs already."""
    image = image_with_topic(retention_ms="5", cleanup_policy="compact")
    made = incremental(image, (TOPIC, "orders", operations))
    assert answers(made) == [(0, None)]
    assert applied(image, made) == after


def test_lists_begin_with_their_default() -> None:
    """Appending to an unset list keeps the default; subtracting the default leaves the rest."""
    image = image_with_topic()
    assert applied(image, incremental(image, (TOPIC, "orders", [("cleanup.policy", APPEND, "compact")]))) == {
        "cleanup.policy": "delete,compact"
    }
    assert applied(
        image, incremental(image, (TOPIC, "orders", [("cleanup.policy", SUBTRACT, "delete")]))
    ) == {"cleanup.policy": "compact"}


def test_unchanged_topic_configs_write_nothing_but_broker_ones_do() -> None:
    """A broker config is written again, so that the broker reloads what it names."""
    image = image_with_topic(retention_ms="5")
    assert incremental(image, (TOPIC, "orders", [("retention.ms", SET, "5")])).records == []
    made = incremental(image, (BROKER, "1", [("log.retention.ms", SET, "300000")]))
    assert applied(image, made, (BROKER, "1")) == {"log.retention.ms": "300000"}
    assert len(incremental(image, (BROKER, "1", [("log.retention.ms", SET, "300000")])).records) == 1


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        (
            (TOPIC, "orders", [("retention.ms", SET, "x")]),
            "INVALID_CONFIG",
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        ((TOPIC, "orders", [("nope", SET, "x")]), "INVALID_CONFIG", "Unknown topic config name: nope"),
        (
            (TOPIC, "orders", [("nope", APPEND, "x")]),
            "INVALID_CONFIG",
            "Can't APPEND to key nope because its type is not LIST.",
        ),
        (
            (TOPIC, "orders", [("retention.ms", SUBTRACT, "5")]),
            "INVALID_CONFIG",
            "Can't SUBTRACT to key retention.ms because its type is not LIST.",
        ),
        (
            (TOPIC, "orders", [("retention.ms", SET, None)]),
            "INVALID_REQUEST",
            "Null value not supported for : retention.ms",
        ),
        (
            (TOPIC, "orders", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]),
            "INVALID_REQUEST",
            "Error due to duplicate config keys",
        ),
        ((TOPIC, "orders", [("retention.ms", 9, "1")]), "INVALID_REQUEST", "Unknown operations type 9"),
        (
            (TOPIC, "nope", [("retention.ms", SET, "1")]),
            "UNKNOWN_TOPIC_OR_PARTITION",
            "The topic 'nope' does not exist.",
        ),
        (
            (TOPIC, "", [("retention.ms", SET, "1")]),
            "INVALID_REQUEST",
            "Default topic resources are not allowed.",
        ),
        (
            (TOPIC, "..", [("retention.ms", SET, "1")]),
            "INVALID_TOPIC_EXCEPTION",
            "Topic name is invalid: '..' is not allowed",
        ),
        (
            (TOPIC, "orders", [("leader.replication.throttled.replicas", SET, "0:1," * 9000)]),
            "INVALID_CONFIG",
            "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
        ),
        (
            (BROKER, "1", [("node.id", SET, "3")]),
            "INVALID_REQUEST",
            "Cannot update these configs dynamically: [node.id]",
        ),
        (
            (BROKER, "", [("listeners", SET, "PLAINTEXT://:1")]),
            "INVALID_REQUEST",
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
        ),
        (
            (BROKER, "1", [("log.retention.ms", SET, "x")]),
            "INVALID_REQUEST",
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            (BROKER, "2", [("log.retention.ms", SET, "1")]),
            "INVALID_REQUEST",
            "Unexpected broker id, expected 1, but received 2",
        ),
        (
            (BROKER, "x", [("log.retention.ms", SET, "1")]),
            "INVALID_REQUEST",
            "Node id must be an integer, but it is: x",
        ),
        (
            (BROKER, "1", [("log.retention.ms", APPEND, "1")]),
            "INVALID_CONFIG",
            "Config value append is not allowed for config key: log.retention.ms",
        ),
        ((BROKER, "1", [("nope", SUBTRACT, "1")]), "INVALID_CONFIG", "Unknown config name: nope"),
        ((3, "x", [("a", SET, "b")]), "INVALID_REQUEST", "Unknown resource type 3"),
        (
            (32, "", [("consumer.session.timeout.ms", SET, "50000")]),
            "INVALID_REQUEST",
            "Default group resources are not allowed.",
        ),
        ((32, "g", [("a", SET, "b")]), "INVALID_CONFIG", "Unknown group config name: a"),
    ],
)
def test_refused_as_kafka_refuses(
    resource: tuple[int, str, list[Operation]], code: str, message: str
) -> None:
    """The code, the message, and no record."""
    made = incremental(image_with_topic(), resource)
    assert answers(made) == [(ErrorCode[code], message)]
    assert made.records == []


def test_unknown_topic_config_may_be_deleted() -> None:
    """What a former version left behind can be cleaned up."""
    assert answers(incremental(image_with_topic(), (TOPIC, "orders", [("nope", DELETE, None)]))) == [
        (0, None)
    ]


def test_each_resource_is_answered_on_its_own() -> None:
    """In the order of the request; a resource given twice is refused both times, the rest goes on."""
    image = image_with_topic()
    twice = (TOPIC, "orders", [("retention.ms", SET, "1")])
    made = incremental(image, twice, (BROKER, "", [("log.retention.ms", SET, "400000")]), twice)
    refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert answers(made) == [refused, (0, None), refused]
    assert made.records == [
        ConfigRecord(resource_type=BROKER, resource_name="", name="log.retention.ms", value="400000")
    ]


def test_a_resource_changes_as_a_whole_or_not_at_all() -> None:
    """One bad config keeps the good one beside it from being set."""
    made = incremental(
        image_with_topic(), (TOPIC, "orders", [("retention.ms", SET, "9"), ("segment.ms", SET, "x")])
    )
    assert made.records == []


def test_validate_only_writes_nothing() -> None:
    """Both requests answer and leave it at that."""
    image = image_with_topic()
    assert (
        incremental(image, (TOPIC, "orders", [("retention.ms", SET, "9")]), validate_only=True).records == []
    )
    made = replace_all(image, (TOPIC, "orders", [("retention.ms", "9")]), validate_only=True)
    assert (answers(made), made.records) == ([(0, None)], [])


@pytest.mark.parametrize(
    ("configs", "after"),
    [
        ([("segment.ms", "8888")], {"segment.ms": "8888"}),
        ([], {}),
        ([("retention.ms", "5")], {"retention.ms": "5"}),
    ],
)
def test_alter_configs_replaces_all(configs: list[tuple[str, str | None]], after: dict[str, str]) -> None:
    """A config that is not named goes back to its default."""
    image = image_with_topic(retention_ms="5", cleanup_policy="compact")
    made = replace_all(image, (TOPIC, "orders", configs))
    assert answers(made) == [(0, None)]
    assert applied(image, made) == after


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        ((TOPIC, "orders", [("nope", "1")]), "INVALID_CONFIG", "Unknown topic config name: nope"),
        (
            (TOPIC, "orders", [("retention.ms", None)]),
            "INVALID_REQUEST",
            "Null value not supported for : retention.ms",
        ),
        (
            (TOPIC, "nope", [("retention.ms", "1")]),
            "UNKNOWN_TOPIC_OR_PARTITION",
            "The topic 'nope' does not exist.",
        ),
        (
            (BROKER, "1", [("node.id", "4")]),
            "INVALID_REQUEST",
            "Cannot update these configs dynamically: [node.id]",
        ),
        ((BROKER, "9", []), "INVALID_REQUEST", "Unexpected broker id, expected 1, but received 9"),
        ((8, "1", [("root", "INFO")]), "INVALID_REQUEST", "Unknown resource type 8"),
    ],
)
def test_alter_configs_refuses_as_kafka_does(
    resource: tuple[int, str, list[tuple[str, str | None]]], code: str, message: str
) -> None:
    """The code, the message, and no record."""
    made = replace_all(image_with_topic(), resource)
    assert answers(made) == [(ErrorCode[code], message)]
    assert made.records == []


def test_min_insync_replicas_under_eligible_leader_replicas() -> None:
    """With KIP-966 in force the bound is the cluster's alone, and changing it clears the eligible leaders."""
    image = running_image(*topic_records("orders"), elr=1)
    name = "min.insync.replicas"
    made = incremental(
        image,
        (BROKER, "1", [(name, SET, "1")]),
        (BROKER, "", [(name, DELETE, None)]),
        (TOPIC, "orders", [(name, SET, "2")]),
    )
    assert answers(made) == [
        (ErrorCode.INVALID_CONFIG, f"Broker-level {name} cannot be altered while ELR is enabled."),
        (ErrorCode.INVALID_CONFIG, f"Cluster-level {name} cannot be removed while ELR is enabled."),
        (0, None),
    ]
    assert made.records == [topic_config("orders", name, "2"), ClearElrRecord(topic_name="orders")]
    made = incremental(image, (BROKER, "", [(name, SET, "2")]))
    assert made.records[1:] == [ClearElrRecord(topic_name="")]
