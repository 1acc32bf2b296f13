"""Metadata records of topics, their partitions and the configs of any resource."""

from ottla.wire.schema import (
    INT8,
    INT32,
    STRING,
    UUID,
    Message,
    array,
    field,
    record,
)
from ottla.wire.uuids import Uuid

NO_LEADER = -1
NO_LEADER_CHANGE = -2


@record(api_key=2, versions=(0, 0), flexible=0)
class TopicRecord(Message):
    name: str = field(STRING)
    topic_id: Uuid = field(UUID)


@record(api_key=3, versions=(0, 2), flexible=0)
class PartitionRecord(Message):
    partition_id: int = field(INT32, default=-1)
    topic_id: Uuid = field(UUID)
    replicas: list[int] = array(INT32)
    isr: list[int] = array(INT32)
    removing_replicas: list[int] = array(INT32)
    adding_replicas: list[int] = array(INT32)
    leader: int = field(INT32, default=NO_LEADER)
    leader_recovery_state: int = field(INT8, default=0, tag=0)
    leader_epoch: int = field(INT32, default=-1)
    partition_epoch: int = field(INT32, default=-1)
    directories: list[Uuid] = array(UUID, "1+")
    eligible_leader_replicas: list[int] | None = array(INT32, "2+", nullable="2+", default=None, tag=1)
    last_known_elr: list[int] | None = array(INT32, "2+", nullable="2+", default=None, tag=2)


@record(api_key=5, versions=(0, 2), flexible=0)
class PartitionChangeRecord(Message):
    """What changed in a partition; an absent field stays as it was."""

    partition_id: int = field(INT32, default=-1)
    topic_id: Uuid = field(UUID)
    isr: list[int] | None = array(INT32, nullable="0+", default=None, tag=0)
    leader: int = field(INT32, default=NO_LEADER_CHANGE, tag=1)
    replicas: list[int] | None = array(INT32, nullable="0+", default=None, tag=2)
    removing_replicas: list[int] | None = array(INT32, nullable="0+", default=None, tag=3)
    adding_replicas: list[int] | None = array(INT32, nullable="0+", default=None, tag=4)
    leader_recovery_state: int = field(INT8, default=-1, tag=5)
    directories: list[Uuid] | None = array(UUID, "1+", nullable="1+", default=None, tag=8)
    eligible_leader_replicas: list[int] | None = array(INT32, "2+", nullable="2+", default=None, tag=6)
    last_known_elr: list[int] | None = array(INT32, "2+", nullable="2+", default=None, tag=7)


@record(api_key=9, versions=(0, 0), flexible=0)
class RemoveTopicRecord(Message):
    topic_id: Uuid = field(UUID)


@record(api_key=28, versions=(0, 0), flexible=0)
class ClearElrRecord(Message):
    """Forget the eligible leaders of one topic, or of every topic when the name is empty."""

    topic_name: str = field(STRING)


@record(api_key=4, versions=(0, 0), flexible=0)
class ConfigRecord(Message):
    """One dynamic config of a resource; a null value removes it."""

    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")
