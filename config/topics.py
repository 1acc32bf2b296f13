"""The table of topic configs (Kafka's LogConfig), in its order, and the broker configs each falls back to.

A topic that does not override a config takes the broker's value of a synonym, e.g. `log.retention.ms`, else
`log.retention.minutes`, else `log.retention.hours` for `retention.ms`; the first one in the list that is set
wins, whatever the level it is set at.
"""

from collections.abc import Mapping
from typing import Final

from ottla.config.definition import ConfigDefinition, ConfigType, Importance, Validator, Value, by_name
from ottla.config.validators import GzipLevel, OneOf, ThrottledReplicas, ValidList, at_least, between
from ottla.wire.dataclass import dataclass

MAX_LONG: Final = (1 << 63) - 1

MS_PER_MINUTE: Final = 60 * 1000
MS_PER_HOUR: Final = 60 * MS_PER_MINUTE
MS_PER_DAY: Final = 24 * MS_PER_HOUR


@dataclass(frozen=True, slots=True)
class BrokerSynonym:
    """A broker config that gives a topic config its default; its unit counts so many milliseconds, if any."""

    name: str
    ms_per_unit: int = 1


def _row(
    name: str,
    kind: ConfigType,
    default: Value,
    doc: str,
    validator: Validator | None = None,
    *,
    internal: bool = False,
    in_effect: bool = False,
) -> ConfigDefinition:
    return ConfigDefinition(
        name, kind, default, doc, validator, Importance.MEDIUM, internal=internal, in_effect=in_effect
    )


_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_LONG, _DOUBLE, _LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST

TOPIC_CONFIGS: Final[Mapping[str, ConfigDefinition]] = by_name(
    _row(
        "segment.bytes",
        _INT,
        1 << 30,
        "Size at which the active segment file of a partition is closed and a new one begun.",
        at_least(1 << 20),
        in_effect=True,
    ),
    _row(
        "segment.ms",
        _LONG,
        7 * MS_PER_DAY,
        "Age at which the active segment is closed though not full, so that old records can be removed.",
        at_least(1),
        in_effect=True,
    ),
    _row(
        "segment.jitter.ms",
        _LONG,
        0,
        "Upper bound of a random amount taken off segment.ms, so that partitions do not all roll together.",
        at_least(0),
        in_effect=True,
    ),
    _row(
        "segment.index.bytes",
        _INT,
        10 << 20,
        "Largest size of the offset index of a segment; a segment whose index is full is rolled.",
        at_least(4),
        in_effect=True,
    ),
    _row(
        "flush.messages",
        _LONG,
        MAX_LONG,
        "Number of records after which the log is forced to disk. The operating system's own writing back is "
        "usually enough.",
        at_least(1),
        in_effect=True,
    ),
    _row(
        "flush.ms",
        _LONG,
        MAX_LONG,
        "Time after which appended records are forced to disk.",
        at_least(0),
        in_effect=True,
    ),
    _row(
        "retention.bytes",
        _LONG,
        -1,
        "Size a partition may grow to before its oldest segments are deleted, when cleanup.policy contains "
        "delete. -1 means no limit.",
        in_effect=True,
    ),
    _row(
        "retention.ms",
        _LONG,
        7 * MS_PER_DAY,
        "Age after which segments are deleted, when cleanup.policy contains delete. -1 means no limit.",
        at_least(-1),
        in_effect=True,
    ),
    _row(
        "max.message.bytes",
        _INT,
        (1 << 20) + 12,
        "Largest record batch, after compression, that may be appended.",
        at_least(0),
        in_effect=True,
    ),
    _row(
        "index.interval.bytes",
        _INT,
        4096,
        "How many bytes of log lie at most between two entries of the offset index.",
        at_least(0),
        in_effect=True,
    ),
    _row(
        "delete.retention.ms",
        _LONG,
        MS_PER_DAY,
        "How long the delete markers (records without value) of a compacted topic stay readable.",
        at_least(0),
        in_effect=True,
    ),
    _row(
        "min.compaction.lag.ms",
        _LONG,
        0,
        "Time for which a record of a compacted topic is safe from compaction.",
        at_least(0),
        in_effect=True,
    ),
    _row(
        "max.compaction.lag.ms",
        _LONG,
        MAX_LONG,
        "Time after which a record of a compacted topic must become eligible for compaction.",
        at_least(1),
        in_effect=True,
    ),
    _row(
        "file.delete.delay.ms",
        _LONG,
        MS_PER_MINUTE,
        "How long the files of a removed segment stay on disk under another name before they are deleted.",
        at_least(0),
        in_effect=True,
    ),
    _row(
        "min.cleanable.dirty.ratio",
        _DOUBLE,
        0.5,
        "Share of a compacted log that must be uncleaned before the cleaner takes it up.",
        between(0, 1),
        in_effect=True,
    ),
    _row(
        "cleanup.policy",
        _LIST,
        ("delete",),
        "What happens to old records: `delete` drops old segments, `compact` keeps the last record of each "
        "key, both do both, and an empty list keeps everything.",
        ValidList(("compact", "delete")),
        in_effect=True,
    ),
    _row(
        "unclean.leader.election.enable",
        _BOOLEAN,
        False,
        "Whether a replica that is not in sync may become leader as a last resort, at the price of losing "
        "records.",
    ),
    _row(
        "min.insync.replicas",
        _INT,
        1,
        "How many replicas must have a record before a producer with acks=all is answered; never more than there "
        "are.",
        at_least(1),
        in_effect=True,
    ),
    _row(
        "compression.type",
        _STRING,
        "producer",
        "Compression of the stored batches; `producer` keeps what the producer sent.",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        in_effect=True,
    ),
    _row(
        "compression.gzip.level",
        _INT,
        -1,
        "Level used with compression.type gzip.",
        GzipLevel(),
        in_effect=True,
    ),
    _row(
        "compression.lz4.level",
        _INT,
        9,
        "Level used with compression.type lz4.",
        between(1, 17),
        in_effect=True,
    ),
    _row(
        "compression.zstd.level",
        _INT,
        3,
        "Level used with compression.type zstd.",
        between(-131072, 22),
        in_effect=True,
    ),
    _row(
        "preallocate",
        _BOOLEAN,
        False,
        "Whether the file of a new segment has its full size at once.",
        in_effect=True,
    ),
    _row(
        "message.timestamp.type",
        _STRING,
        "CreateTime",
        "Whether a record keeps the producer's timestamp (CreateTime) or gets the broker's (LogAppendTime).",
        OneOf(("CreateTime", "LogAppendTime")),
        in_effect=True,
    ),
    _row(
        "message.timestamp.before.max.ms",
        _LONG,
        MAX_LONG,
        "How far a record's timestamp may lie before the broker's clock, with CreateTime.",
        at_least(0),
        in_effect=True,
    ),
    _row(
        "message.timestamp.after.max.ms",
        _LONG,
        MS_PER_HOUR,
        "How far a record's timestamp may lie after the broker's clock, with CreateTime.",
        at_least(0),
        in_effect=True,
    ),
    _row(
        "leader.replication.throttled.replicas",
        _LIST,
        (),
        "Replicas whose replication is limited on the leader's side, as partition:broker pairs or `*`.",
        ThrottledReplicas(),
    ),
    _row(
        "follower.replication.throttled.replicas",
        _LIST,
        (),
        "Replicas whose replication traffic is limited on the follower's side, as partition:broker pairs or "
        "`*`.",
        ThrottledReplicas(),
    ),
    _row(
        "remote.storage.enable",
        _BOOLEAN,
        False,
        "Whether old segments move to remote storage. Only where the broker has remote storage.",
    ),
    _row(
        "local.retention.ms",
        _LONG,
        -2,
        "Age after which a segment copied to remote storage is deleted locally. -2 takes retention.ms.",
        at_least(-2),
    ),
    _row(
        "local.retention.bytes",
        _LONG,
        -2,
        "Local size of a partition with remote storage before copied segments are deleted. -2 takes "
        "retention.bytes.",
        at_least(-2),
    ),
    _row("remote.log.copy.disable", _BOOLEAN, False, "Whether copying to remote storage is stopped."),
    _row(
        "remote.log.delete.on.disable",
        _BOOLEAN,
        False,
        "Whether the remote data is deleted when remote storage of the topic is switched off.",
    ),
    _row(
        "internal.segment.bytes",
        _INT,
        None,
        "Segment size below the lower bound of segment.bytes, for tests.",
        internal=True,
        in_effect=True,
    ),
)

TOPIC_SYNONYMS: Final[Mapping[str, tuple[BrokerSynonym, ...]]] = {
    "segment.bytes": (BrokerSynonym("log.segment.bytes"),),
    "segment.ms": (BrokerSynonym("log.roll.ms"), BrokerSynonym("log.roll.hours", MS_PER_HOUR)),
    "segment.jitter.ms": (
        BrokerSynonym("log.roll.jitter.ms"),
        BrokerSynonym("log.roll.jitter.hours", MS_PER_HOUR),
    ),
    "segment.index.bytes": (BrokerSynonym("log.index.size.max.bytes"),),
    "flush.messages": (BrokerSynonym("log.flush.interval.messages"),),
    "flush.ms": (BrokerSynonym("log.flush.interval.ms"), BrokerSynonym("log.flush.scheduler.interval.ms")),
    "retention.bytes": (BrokerSynonym("log.retention.bytes"),),
    "retention.ms": (
        BrokerSynonym("log.retention.ms"),
        BrokerSynonym("log.retention.minutes", MS_PER_MINUTE),
        BrokerSynonym("log.retention.hours", MS_PER_HOUR),
    ),
    "max.message.bytes": (BrokerSynonym("message.max.bytes"),),
    "index.interval.bytes": (BrokerSynonym("log.index.interval.bytes"),),
    "delete.retention.ms": (BrokerSynonym("log.cleaner.delete.retention.ms"),),
    "min.compaction.lag.ms": (BrokerSynonym("log.cleaner.min.compaction.lag.ms"),),
    "max.compaction.lag.ms": (BrokerSynonym("log.cleaner.max.compaction.lag.ms"),),
    "file.delete.delay.ms": (BrokerSynonym("log.segment.delete.delay.ms"),),
    "min.cleanable.dirty.ratio": (BrokerSynonym("log.cleaner.min.cleanable.ratio"),),
    "cleanup.policy": (BrokerSynonym("log.cleanup.policy"),),
    "unclean.leader.election.enable": (BrokerSynonym("unclean.leader.election.enable"),),
    "min.insync.replicas": (BrokerSynonym("min.insync.replicas"),),
    "compression.type": (BrokerSynonym("compression.type"),),
    "compression.gzip.level": (BrokerSynonym("compression.gzip.level"),),
    "compression.lz4.level": (BrokerSynonym("compression.lz4.level"),),
    "compression.zstd.level": (BrokerSynonym("compression.zstd.level"),),
    "preallocate": (BrokerSynonym("log.preallocate"),),
    "message.timestamp.type": (BrokerSynonym("log.message.timestamp.type"),),
    "message.timestamp.before.max.ms": (BrokerSynonym("log.message.timestamp.before.max.ms"),),
    "message.timestamp.after.max.ms": (BrokerSynonym("log.message.timestamp.after.max.ms"),),
    "local.retention.ms": (BrokerSynonym("log.local.retention.ms"),),
    "local.retention.bytes": (BrokerSynonym("log.local.retention.bytes"),),
}
