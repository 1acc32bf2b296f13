"""Metadata records of the cluster as a whole: feature levels, producer ids, quotas, and the brackets of a
transaction in the metadata log (KIP-868)."""

from ottla.wire.schema import (
    BOOL,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    array,
    field,
    record,
    structure,
)


@record(api_key=12, versions=(0, 0), flexible=0)
class FeatureLevelRecord(Message):
    name: str = field(STRING)
    feature_level: int = field(INT16)


@record(api_key=15, versions=(0, 0), flexible=0)
class ProducerIdsRecord(Message):
    """A block of producer ids was given to a broker; the next block begins at `next_producer_id`."""

    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)
    next_producer_id: int = field(INT64)


@structure
class EntityData:
    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable="0+")


@record(api_key=14, versions=(0, 0), flexible=0)
class ClientQuotaRecord(Message):
    entity: list[EntityData] = array(EntityData)
    key: str = field(STRING)
    value: float = field(FLOAT64)
    remove: bool = field(BOOL)


@record(api_key=20, versions=(0, 0), flexible=0)
class NoOpRecord(Message):
    """Written by an idle Kafka controller so that the log keeps moving."""


@record(api_key=21, versions=(0, 0), flexible=0)
class ZkMigrationStateRecord(Message):
    zk_migration_state: int = field(INT8)


@record(api_key=23, versions=(0, 0), flexible=0)
class BeginTransactionRecord(Message):
    """What follows takes effect only when the matching end is read."""

    name: str | None = field(STRING, nullable="0+", default=None, tag=0)


@record(api_key=24, versions=(0, 0), flexible=0)
class EndTransactionRecord(Message):
    """The records since the matching begin take effect."""


@record(api_key=25, versions=(0, 0), flexible=0)
class AbortTransactionRecord(Message):
    """The records since the matching begin never happened."""

    reason: str | None = field(STRING, nullable="0+", default=None, tag=0)
