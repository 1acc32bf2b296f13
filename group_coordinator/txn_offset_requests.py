"""TxnOffsetCommit, once the server has found the group's shard and the transaction's coordinator has agreed.

The offsets are written like those of OffsetCommit, but as records of the transaction's producer, and pending until its
marker. Records carry no topic id, as in Kafka.
"""

from __future__ import annotations

from ottla.group_coordinator.group import Committer, Group, PartitionCheck
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.records.offsets import OffsetCommitKey, OffsetCommitValue
from ottla.group_coordinator.topics import Topics
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def commit(
    request: TxnOffsetCommitRequest,
    api_version: int,
    group: Group | None,
    topics: Topics,
    now_ms: int,
    metadata_max_bytes: int,
) -> tuple[list[CoordinatorRecord], TxnOffsetCommitResponse]:
    """The records of a commit and its answer; KafkaError when the group does not allow it."""
    try:
        check = _check(request, api_version, group)
        return _commit(request, check, topics, now_ms, metadata_max_bytes)
    except KafkaError as error:
        if error.code is ErrorCode.STALE_MEMBER_EPOCH:  # producers know generations only
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION) from error
        raise


def _check(request: TxnOffsetCommitRequest, api_version: int, group: Group | None) -> PartitionCheck | None:
    if group is None:
        if request.generation_id >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return None  # a consumer that assigns its partitions itself
    return group.check_offset_commit(
        Committer(
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            api_version,
            is_transactional=True,
        )
    )


def _commit(
    request: TxnOffsetCommitRequest,
    check: PartitionCheck | None,
    topics: Topics,
    now_ms: int,
    metadata_max_bytes: int,
) -> tuple[list[CoordinatorRecord], TxnOffsetCommitResponse]:
    records: list[CoordinatorRecord] = []
    response = TxnOffsetCommitResponse()
    for topic in request.topics:
        result = TxnOffsetCommitResponseTopic(topic.name)
        response.topics.append(result)
        found = topics.by_name(topic.name)
        if found is None and check is not None:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        for partition in topic.partitions:
            error = ErrorCode.NONE
            if len(partition.committed_metadata or "") > metadata_max_bytes:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                if check is not None and found is not None:
                    check(topic.name, found.topic_id, partition.partition_index)
                records.append(_record(request.group_id, topic.name, partition, now_ms))
            result.partitions.append(TxnOffsetCommitResponsePartition(partition.partition_index, error))
    return records, response


def _record(
    group_id: str, topic: str, partition: TxnOffsetCommitRequestPartition, now_ms: int
) -> CoordinatorRecord:
    return CoordinatorRecord(
        OffsetCommitKey(group_id, topic, partition.partition_index),
        OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
            commit_timestamp=now_ms,
        ),
    )


def commit_error(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """The same error for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [TxnOffsetCommitResponsePartition(each.partition_index, error) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )
