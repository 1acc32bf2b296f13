"""The configuration of one topic's logs, as typed values: what log_store is told.

`DEFAULT_TOPIC_CONFIG` holds Kafka's defaults; `topic_config_from` makes one
from parsed values by config name.
"""

from collections.abc import Mapping
from typing import Any, Final

from ottla.config.definition import Value
from ottla.config.topics import TOPIC_CONFIGS
from ottla.wire.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """Every topic config by its name with underscores; times in ms, sizes in bytes."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    flush_messages: int = (1 << 63) - 1
    flush_ms: int = (1 << 63) - 1
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    max_message_bytes: int = (1 << 20) + 12
    index_interval_bytes: int = 4096
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = (1 << 63) - 1
    file_delete_delay_ms: int = 60_000
    min_cleanable_dirty_ratio: float = 0.5
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    unclean_leader_election_enable: bool = False
    min_insync_replicas: int = 1
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    preallocate: bool = False
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = (1 << 63) - 1
    message_timestamp_after_max_ms: int = 3_600_000
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    remote_storage_enable: bool = False
    local_retention_ms: int = -2
    local_retention_bytes: int = -2
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    internal_segment_bytes: int | None = None

    @property
    def is_compacted(self) -> bool:
        """Whether the last record of each key is kept."""
        return "compact" in self.cleanup_policy

    @property
    def deletes_old_segments(self) -> bool:
        """Whether retention applies."""
        return "delete" in self.cleanup_policy

    @property
    def uses_log_append_time(self) -> bool:
        """Whether the broker's clock stamps the records."""
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def max_segment_bytes(self) -> int:
        """The segment size to go by; tests may set one below the bound of segment.bytes."""
        return self.segment_bytes if self.internal_segment_bytes is None else self.internal_segment_bytes

    @property
    def max_segment_ms(self) -> int:
        """The segment age to go by; a compacted topic must also roll within max.compaction.lag.ms."""
        if self.is_compacted and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms


DEFAULT_TOPIC_CONFIG: Final = TopicConfig()

_FIELD_OF: Final[Mapping[str, str]] = {name: name.replace(".", "_") for name in TOPIC_CONFIGS}
assert set(_FIELD_OF.values()) == set(TopicConfig.__slots__)


def topic_config_from(values: Mapping[str, Value]) -> TopicConfig:
    """A TopicConfig of parsed values by config name; what is absent has Kafka's default."""
    arguments: dict[str, Any] = {_FIELD_OF[name]: value for name, value in values.items()}
    if "cleanup_policy" in arguments:
        arguments["cleanup_policy"] = frozenset(arguments["cleanup_policy"])
    return TopicConfig(**arguments)
