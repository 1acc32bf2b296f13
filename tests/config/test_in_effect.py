"""A config is marked as in effect exactly when some code goes by it."""

import re
from pathlib import Path

import pytest

from ottla.config.broker import BROKER_CONFIGS
from ottla.config.topics import TOPIC_CONFIGS, TOPIC_SYNONYMS

ROOT = Path(__file__).parents[2]
ROOMS = ("server", "metadata", "log_store", "group_coordinator", "txn_coordinator", "cli")

# Values of a TopicConfig that are read through a property of another name, or in config/ itself.
THROUGH_PROPERTIES = {
    "max_segment_bytes": ("segment.bytes", "internal.segment.bytes"),
    "max_segment_ms": ("segment.ms", "max.compaction.lag.ms"),
    "uses_log_append_time": ("message.timestamp.type",),
    "deletes_old_segments": ("cleanup.policy",),
    "is_compacted": ("cleanup.policy",),
}

# Settings that are read under a name put together while running, or by BrokerConfig for everybody.
THROUGH_CODE = {
    "advertised.listeners": "advertised_listeners()",
    "broker.id": "node_id()",
    "broker.rack": "rack()",
    "controller.listener.names": "listeners()",
    "controller.quorum.voters": "BrokerConfig.load",
    "inter.broker.listener.name": "BrokerConfig.load",
    "listener.security.protocol.map": "listeners()",
    "listeners": "listeners()",
    "log.dir": "log_dirs()",
    "log.dirs": "log_dirs()",
    "metadata.log.dir": "metadata_log_dir()",
    "node.id": "node_id()",
    "process.roles": "BrokerConfig.load",
    "security.inter.broker.protocol": "BrokerConfig.load",
    **{
        f"{prefix}.{rest}": "internal_topic_to_create"
        for prefix in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
        for rest in ("segment.bytes", "num.partitions", "replication.factor")
    },
    **{
        f"group.consumer.{bound}{rest}": "group_values("
        for bound in ("", "min.", "max.")
        for rest in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
    },
    **{
        f"group.share.{bound}{rest}": "group_values("
        for bound in ("", "min.", "max.")
        for rest in (
            "session.timeout.ms",
            "heartbeat.interval.ms",
            "assignment.interval.ms",
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
        )
    },
}


@pytest.fixture(scope="module")
def source() -> str:
    """The text of every room above config."""
    return "\n".join(
        path.read_text(encoding="utf-8") for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))
    )


def test_topic_configs(source: str) -> None:
    """A topic config is in effect if its value of the TopicConfig is read."""
    used = {name for name in TOPIC_CONFIGS if re.search(rf"\.{name.replace('.', '_')}\b", source)}
    for attribute, names in THROUGH_PROPERTIES.items():
        if re.search(rf"\.{attribute}\b", source):
            used.update(names)
    assert {name for name, row in TOPIC_CONFIGS.items() if row.in_effect} == used


def test_broker_configs(source: str) -> None:
    """A broker config is in effect if it is read, or if it gives its default to a topic config that is."""
    used = {name for name in BROKER_CONFIGS if re.search(rf'get\w*\(\s*"{re.escape(name)}"', source)}
    used |= {name for name, reader in THROUGH_CODE.items() if reader in source}
    for name, row in TOPIC_CONFIGS.items():
        if row.in_effect:
            used.update(synonym.name for synonym in TOPIC_SYNONYMS.get(name, ()))
    assert {name for name, row in BROKER_CONFIGS.items() if row.in_effect} == used
