"""Changes of a running broker's configs, of groups and of client metrics: Kafka's words for what it refuses."""

import pytest

from ottla.config.broker_change import BrokerLayers, check_broker_change
from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import ConfigError
from ottla.config.resources import ResourceType, check_resource_configs
from ottla.wire.errors import ErrorCode, KafkaError

LAYERS = BrokerLayers(BrokerConfig.load({"node.id": "1", "log.retention.hours": "100"}))
LISTENER_STORE = "listener.name.plaintext.ssl.keystore.location"


@pytest.mark.parametrize(
    ("name", "text", "per_broker", "said"),
    [
        ("num.partitions", "4", True, "Cannot update these configs dynamically: [num.partitions]"),
        ("log.retention.hours", "4", True, "Cannot update these configs dynamically: [log.retention.hours]"),
        (
            "log.retention.ms",
            "x",
            True,
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            "log.retention.ms",
            "0",
            True,
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        (
            "num.io.threads",
            "100",
            True,
            "Invalid dynamic configuration: Dynamic thread count update validation failed for "
            "num.io.threads=100, value should not be greater than double the current value 8",
        ),
        (
            "num.io.threads",
            "3",
            True,
            "Invalid dynamic configuration: Dynamic thread count update validation failed for "
            "num.io.threads=3, value should be at least half the current value 8",
        ),
        (
            "ssl.keystore.location",
            "x",
            False,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.location]",
        ),
        (
            "listeners",
            "PLAINTEXT://:1",
            False,
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
        ),
        (
            LISTENER_STORE,
            "x",
            False,
            f"Cannot update these configs at default cluster level, broker id must be specified: [{LISTENER_STORE}]",
        ),
        (
            "listeners",
            "PLAINTEXT://:1",
            True,
            "Invalid dynamic configuration: listeners cannot be changed while Ottla runs",
        ),
        (
            "cordoned.log.dirs",
            "/x",
            True,
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
            "Missing entries : /x",
        ),
        (
            "log.local.retention.ms",
            "999999999999",
            True,
            "Invalid dynamic configuration: Invalid value 999999999999 for configuration "
            "log.local.retention.ms: Value must not be more than log.retention.ms property value: 360000000",
        ),
        (
            "log.cleaner.threads",
            "200",
            True,
            "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
    ],
)
def test_broker_refuses(name: str, text: str, per_broker: bool, said: str) -> None:
    """What a running broker cannot be told."""
    with pytest.raises(ConfigError) as caught:
        check_broker_change(LAYERS, {name: text}, per_broker=per_broker)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("name", "text", "per_broker"),
    [
        ("log.retention.ms", "777", True),
        ("log.retention.ms", "-1", False),
        ("num.io.threads", "16", True),
        ("nope", "1", True),
        (LISTENER_STORE, "x", True),
        ("listener.name.plaintext.max.connections", "5", False),
        ("leader.replication.throttled.rate", "10", True),
        ("max.connections", "10", False),
    ],
)
def test_broker_accepts(name: str, text: str, per_broker: bool) -> None:
    """What it can; names that it does not know are kept for plugins, as in Kafka."""
    check_broker_change(LAYERS, {name: text}, per_broker=per_broker)


def test_change_is_judged_with_the_other_level() -> None:
    """A change for all brokers meets what is stored for this one."""
    stored = BrokerLayers(LAYERS.static, {}, {"log.cleaner.min.compaction.lag.ms": "9"})
    with pytest.raises(ConfigError, match=r"\(9\) > max.compaction.lag.ms \(5\)"):
        check_broker_change(stored, {"log.cleaner.max.compaction.lag.ms": "5"}, per_broker=False)


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        (
            {"consumer.session.timeout.ms": "1"},
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {"consumer.session.timeout.ms": "99999999"},
            "consumer.session.timeout.ms must be less than or equal to group.consumer.max.session.timeout.ms",
        ),
        (
            {"consumer.session.timeout.ms": "x"},
            "Invalid value x for configuration consumer.session.timeout.ms: Not a number of type INT",
        ),
        ({"nope": "1"}, "Unknown group config name: nope"),
        (
            {"streams.num.standby.replicas": "9"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        (
            {"share.auto.offset.reset": "by_duration:x"},
            "Invalid value by_duration:x for configuration share.auto.offset.reset: Invalid value "
            "`by_duration:x` for configuration share.auto.offset.reset. The value must be either 'earliest', "
            "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        ),
    ],
)
def test_group_refuses(configs: dict[str, str], said: str) -> None:
    """What a group cannot have."""
    with pytest.raises(KafkaError) as caught:
        check_resource_configs(ResourceType.GROUP, configs, name="g", existing={}, broker=LAYERS.static)
    assert (caught.value.code, caught.value.detail) == (ErrorCode.INVALID_CONFIG, said)


def test_group_accepts() -> None:
    """What a group can have."""
    configs = {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "by_duration:PT1H"}
    check_resource_configs(ResourceType.GROUP, dict(configs), name="g", existing={}, broker=LAYERS.static)


@pytest.mark.parametrize(
    ("name", "configs", "code", "said"),
    [
        (
            "m",
            {"interval.ms": "1"},
            ErrorCode.INVALID_REQUEST,
            "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        ("m", {"match": "x"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: x"),
        (
            "m",
            {"match": "client_id=a("},
            ErrorCode.INVALID_CONFIG,
            "Illegal client matching pattern: client_id=a(",
        ),
        ("m", {"nope": "x"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: nope"),
        ("", {"metrics": "x"}, ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
    ],
)
def test_client_metrics_refuse(name: str, configs: dict[str, str], code: ErrorCode, said: str) -> None:
    """What a client metrics subscription cannot have."""
    with pytest.raises(KafkaError) as caught:
        check_resource_configs(
            ResourceType.CLIENT_METRICS, dict(configs), name=name, existing={}, broker=LAYERS.static
        )
    assert (caught.value.code, caught.value.detail) == (code, said)


def test_resource_names() -> None:
    """Broker names are numbers, groups have names, other types have no configs."""
    for resource_type, name, said in [
        (ResourceType.BROKER, "x", "Unable to parse broker name as a base 10 number."),
        (ResourceType.BROKER, "-1", "Invalid negative broker ID."),
        (ResourceType.GROUP, "", "Default group resources are not allowed."),
        (ResourceType.BROKER_LOGGER, "1", "Unknown resource type 8"),
    ]:
        with pytest.raises(KafkaError) as caught:
            check_resource_configs(resource_type, {}, name=name, existing={}, broker=LAYERS.static)
        assert (caught.value.code, caught.value.detail) == (ErrorCode.INVALID_REQUEST, said)
