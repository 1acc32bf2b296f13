"""A topic's configs: what is refused, in the words of Apache Kafka 4.3.0, and what the log is told."""

import logging

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.config.topic_config import DEFAULT_TOPIC_CONFIG, TopicConfig
from ottla.config.topic_rules import effective_topic_config, validate_topic_configs
from ottla.wire.errors import ErrorCode, KafkaError

BROKER = BrokerConfig.load({})
THROTTLED = "leader.replication.throttled.replicas"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("foo", "1", "Unknown topic config name: foo"),
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        (
            "cleanup.policy",
            "foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", "compact,,delete", "Configuration 'cleanup.policy' values must not be empty."),
        (
            "segment.bytes",
            "1",
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: "
            "Value must be between 1 and 9 or equal to -1",
        ),
        (
            "compression.lz4.level",
            "18",
            "Invalid value 18 for configuration compression.lz4.level: Value must be no more than 17",
        ),
        (
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "remote.storage.enable",
            "true",
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
        (
            THROTTLED,
            "1",
            f"Invalid value [1] for configuration {THROTTLED}: {THROTTLED} must be the literal '*' or a list of "
            "replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        (
            "message.timestamp.type",
            "Foo",
            "Invalid value Foo for configuration message.timestamp.type: "
            "String must be one of: CreateTime, LogAppendTime",
        ),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
    ],
)
def test_refused(name: str, text: str | None, said: str) -> None:
    """What a real Kafka refused, with the same words and code."""
    with pytest.raises(KafkaError) as caught:
        validate_topic_configs({name: text}, BROKER)
    assert (caught.value.code, caught.value.detail) == (ErrorCode.INVALID_CONFIG, said)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cleanup.policy", ""),
        ("cleanup.policy", "delete,delete"),
        ("retention.ms", " 5 "),
        ("retention.ms", "+7"),
        ("internal.segment.bytes", "1000"),
        ("min.cleanable.dirty.ratio", "1d"),
        (THROTTLED, "*"),
        (THROTTLED, "0:1, 1:2"),
    ],
)
def test_accepted(name: str, text: str) -> None:
    """What a real Kafka accepted."""
    validate_topic_configs({name: text}, BROKER)


def test_conflict_with_the_brokers_value() -> None:
    """Overrides are judged together with what the broker says."""
    broker = BrokerConfig.load({"log.cleaner.max.compaction.lag.ms": "5"})
    validate_topic_configs({"min.compaction.lag.ms": "10"}, BROKER)
    with pytest.raises(KafkaError) as caught:
        validate_topic_configs({"min.compaction.lag.ms": "10"}, broker)
    assert caught.value.detail == (
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    )


def test_leaving_remote_storage() -> None:
    """A topic that had remote storage, on a real Kafka before, cannot drop it silently."""
    had = {"remote.storage.enable": "true"}
    with pytest.raises(KafkaError, match="invalid to disable remote storage without deleting"):
        validate_topic_configs({}, BROKER, had)
    validate_topic_configs({"remote.log.delete.on.disable": "true"}, BROKER, had)


def test_defaults_are_kafkas() -> None:
    """The dataclass, the table and a broker without properties agree."""
    assert effective_topic_config({}, {}, {}, BROKER) == DEFAULT_TOPIC_CONFIG == TopicConfig()


def test_effective() -> None:
    """Topic over broker over all brokers over static, whatever the unit."""
    static = BrokerConfig.load(
        {"log.retention.hours": "2", "log.roll.hours": "3", "message.max.bytes": "100"}
    )
    config = effective_topic_config({"segment.bytes": "2000000"}, {}, {}, static)
    assert config.segment_bytes == 2_000_000
    assert config.retention_ms == 2 * 3_600_000
    assert config.segment_ms == 3 * 3_600_000
    assert config.max_message_bytes == 100
    minutes = BrokerConfig.load({"log.retention.hours": "2", "log.retention.minutes": "1"})
    assert effective_topic_config({}, {}, {}, minutes).retention_ms == 60_000
    everywhere = {"log.retention.ms": "888"}
    here = {"log.retention.ms": "777"}
    assert effective_topic_config({}, {}, everywhere, minutes).retention_ms == 888
    assert effective_topic_config({}, here, everywhere, minutes).retention_ms == 777
    assert effective_topic_config({"retention.ms": "5"}, here, everywhere, minutes).retention_ms == 5


def test_negative_retention_is_no_limit() -> None:
    """Any negative retention of the broker means -1."""
    static = BrokerConfig.load({"log.retention.hours": "-1"})
    assert effective_topic_config({}, {}, {}, static).retention_ms == -1


def test_broken_stored_configs_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """A record that no broker should have written keeps nobody from starting."""
    stored = {"retention.ms": "abc", "no.such": "1", "flush.ms": "3"}
    with caplog.at_level(logging.WARNING, "ottla.config"):
        config = effective_topic_config(stored, {"num.partitions": "9"}, {"log.roll.ms": "x"}, BROKER)
    assert config == TopicConfig(flush_ms=3)
    assert [record.message.partition(": ")[2].split(" ")[0] for record in caplog.records] == [
        "Invalid",
        "Cannot",
        "Invalid",
        "Unknown",
    ]


def test_derived_values() -> None:
    """What the log asks beyond single configs."""
    compacted = TopicConfig(cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=5)
    assert compacted.is_compacted
    assert not compacted.deletes_old_segments
    assert compacted.max_segment_ms == 5
    assert TopicConfig(max_compaction_lag_ms=5).max_segment_ms == 604_800_000
    assert TopicConfig(internal_segment_bytes=9).max_segment_bytes == 9
    assert TopicConfig().max_segment_bytes == 1 << 30
    assert TopicConfig(message_timestamp_type="LogAppendTime").uses_log_append_time
