"""TxnOffsetCommit (28): keep how far a group has read, once a transaction commits.

Version 2 has the leader epoch, 3 is flexible and says which member commits, 4 may be answered
TRANSACTION_ABORTABLE, 5 adds the group to the transaction by itself (KIP-890).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT16, INT32, INT64, STRING, Message, array, field, message, structure


@structure
class TxnOffsetCommitRequestPartition:
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, "2+", default=-1, ignorable=True)
    committed_metadata: str | None = field(STRING, nullable="0+")


@structure
class TxnOffsetCommitRequestTopic:
    name: str = field(STRING)
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


@message(api_key=ApiKey.TXN_OFFSET_COMMIT, kind="request", versions=(0, 5), flexible=3)
class TxnOffsetCommitRequest(Message):
    transactional_id: str = field(STRING)
    group_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    generation_id: int = field(INT32, "3+", default=-1)
    member_id: str = field(STRING, "3+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


@structure
class TxnOffsetCommitResponsePartition:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


@structure
class TxnOffsetCommitResponseTopic:
    name: str = field(STRING)
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


@message(api_key=ApiKey.TXN_OFFSET_COMMIT, kind="response", versions=(0, 5), flexible=3)
class TxnOffsetCommitResponse(Message):
    throttle_time_ms: int = field(INT32)
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
