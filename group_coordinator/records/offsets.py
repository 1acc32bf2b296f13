"""Records of committed offsets in `__consumer_offsets`."""

from __future__ import annotations

from ottla.wire.schema import INT32, INT64, STRING, UUID, Message, field, record
from ottla.wire.uuids import Uuid


@record(api_key=0, versions=(0, 0))
class LegacyOffsetCommitKey(Message):
    group: str = field(STRING, "0")
    topic: str = field(STRING, "0")
    partition: int = field(INT32, "0")


@record(api_key=0, versions=(0, 0))
class LegacyOffsetCommitValue(Message):
    offset: int = field(INT64, "0")
    metadata: str = field(STRING, "0")
    commit_timestamp: int = field(INT64, "0")


@record(api_key=1, versions=(0, 0))
class OffsetCommitKey(Message):
    group: str = field(STRING, "0")
    topic: str = field(STRING, "0")
    partition: int = field(INT32, "0")


@record(api_key=1, versions=(0, 4), flexible=4)
class OffsetCommitValue(Message):
    offset: int = field(INT64)
    leader_epoch: int = field(INT32, "3+", default=-1, ignorable=True)
    metadata: str = field(STRING)
    commit_timestamp: int = field(INT64)
    expire_timestamp: int = field(INT64, "1", default=-1, ignorable=True)
    topic_id: Uuid = field(UUID, "4+", tag=0, ignorable=True)
