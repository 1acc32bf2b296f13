"""The topics the broker keeps for itself: which they are, how they are made, which partition a key belongs to.

Clients see them marked as internal and may not produce to them.
"""

from __future__ import annotations

import functools

from ottla.config.broker_config import BrokerConfig
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"

INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})


def is_internal_topic(name: str) -> bool:
    """Whether a topic is one of the broker's own."""
    return name in INTERNAL_TOPICS


def internal_topic_to_create(name: str, config: BrokerConfig, brokers: int) -> CreatableTopic | None:
    """An internal topic with the partitions, replicas and configs it has to have; None for any other name.

    Kafka's default of three replicas would keep a broker alone from ever serving a group, so without an explicit
    setting there are no more replicas than brokers.
    """
    if name == OFFSETS_TOPIC:
        prefix, configs = "offsets.topic", {"cleanup.policy": "compact", "compression.type": "producer"}
    elif name == TRANSACTIONS_TOPIC:
        prefix = "transaction.state.log"
        configs = {
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": str(config.get_int("transaction.state.log.min.isr")),
        }
    elif name == SHARE_STATE_TOPIC:
        prefix = "share.coordinator.state.topic"
        configs = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": str(config.get_int("share.coordinator.state.topic.min.isr")),
            "retention.ms": "-1",
        }
    else:
        return None
    replication_factor = config.get_int(f"{prefix}.replication.factor")
    if not config.is_set(f"{prefix}.replication.factor"):
        replication_factor = min(replication_factor, brokers)
    configs["segment.bytes"] = str(config.get_int(f"{prefix}.segment.bytes"))
    return CreatableTopic(
        name=name,
        num_partitions=config.get_int(f"{prefix}.num.partitions"),
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )


def coordinator_partition(key: str, partition_count: int) -> int:
    """The partition of an internal topic whose leader coordinates a group or transactional id."""
    hash_of = _remembered_hash if len(key) <= _REMEMBERED_CHARACTERS else java_string_hash
    return abs(hash_of(key)) % partition_count


def java_string_hash(text: str) -> int:
    """`String.hashCode` of Java: over UTF-16 units, wrapped to 32 bits, signed. The least value counts as 0."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    if value == 0x80000000:
        return 0
    return value - 0x1_0000_0000 if value > 0x7FFFFFFF else value


# Heartbeats and commits ask for the same groups again and again; long keys would fill the memory.
_REMEMBERED_CHARACTERS = 128
_remembered_hash = functools.lru_cache(maxsize=10_000)(java_string_hash)
