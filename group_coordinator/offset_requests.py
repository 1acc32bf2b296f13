"""OffsetCommit, OffsetFetch and OffsetDelete, once the server has found the group's shard and the topics' names."""

from __future__ import annotations

from ottla.group_coordinator.group import Committer, Group, PartitionCheck
from ottla.group_coordinator.offsets import NO_TIMESTAMP, Offsets
from ottla.group_coordinator.records import CoordinatorRecord, tombstone
from ottla.group_coordinator.records.offsets import OffsetCommitKey, OffsetCommitValue
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ottla.wire.uuids import ZERO_UUID, Uuid

_INVALID_OFFSET = -1
_DEFAULT_RETENTION = -1


def committer_of(request: OffsetCommitRequest, api_version: int) -> Committer:
    return Committer(
        request.member_id, request.group_instance_id, request.generation_id_or_member_epoch, api_version
    )


# Commit ------------------------------------------------------------------------------------------------------


def commit(
    request: OffsetCommitRequest, check: PartitionCheck | None, now_ms: int, metadata_max_bytes: int
) -> tuple[list[CoordinatorRecord], OffsetCommitResponse]:
    """The records of a commit that the group allows, and its answer."""
    expire_timestamp = NO_TIMESTAMP
    if request.retention_time_ms != _DEFAULT_RETENTION:
        expire_timestamp = now_ms + request.retention_time_ms
    records: list[CoordinatorRecord] = []
    response = OffsetCommitResponse()
    for topic in request.topics:
        result = OffsetCommitResponseTopic(topic.name, topic.topic_id)
        response.topics.append(result)
        for partition in topic.partitions:
            error = ErrorCode.NONE
            if len(partition.committed_metadata or "") > metadata_max_bytes:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                if check is not None:
                    check(topic.name, topic.topic_id, partition.partition_index)
                records.append(_record(request.group_id, topic, partition, now_ms, expire_timestamp))
            result.partitions.append(OffsetCommitResponsePartition(partition.partition_index, error))
    return records, response


def _record(
    group_id: str,
    topic: OffsetCommitRequestTopic,
    partition: OffsetCommitRequestPartition,
    now_ms: int,
    expire_timestamp: int,
) -> CoordinatorRecord:
    return CoordinatorRecord(
        OffsetCommitKey(group_id, topic.name, partition.partition_index),
        OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
            commit_timestamp=now_ms,
            expire_timestamp=expire_timestamp,
            topic_id=topic.topic_id,
        ),
    )


def commit_error(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The same error for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [OffsetCommitResponsePartition(each.partition_index, error) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


# Fetch -------------------------------------------------------------------------------------------------------


def fetch(
    offsets: Offsets, group: Group | None, request: OffsetFetchRequestGroup, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    """The offsets of the topics asked for, or of all; raises KafkaError when the group refuses. Where stable ones are
    required, those that an open transaction may change are UNSTABLE_OFFSET_COMMIT (KIP-447)."""
    if group is not None:
        group.check_offset_fetch(request.member_id, request.member_epoch)
    fetched = OffsetFetchResponseGroup(request.group_id)
    if request.topics is None:
        fetched.topics = [
            OffsetFetchResponseTopics(
                name=topic,
                partitions=[_fetched(partition, value) for partition, value in partitions.items()],
            )
            for topic, partitions in offsets.of_group(request.group_id).items()
        ]
    else:
        fetched.topics = [_fetch_topic(offsets, request.group_id, topic) for topic in request.topics]
    if require_stable and offsets.pending.has_group(request.group_id):
        _refuse_unstable(offsets, fetched)
    return fetched


def _refuse_unstable(offsets: Offsets, fetched: OffsetFetchResponseGroup) -> None:
    for topic in fetched.topics:
        topic.partitions = [
            OffsetFetchResponsePartitions(
                each.partition_index, _INVALID_OFFSET, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT
            )
            if offsets.pending.has(fetched.group_id, topic.name, each.partition_index)
            else each
            for each in topic.partitions
        ]


def _fetch_topic(
    offsets: Offsets, group_id: str, topic: OffsetFetchRequestTopics
) -> OffsetFetchResponseTopics:
    partitions = []
    committed = offsets.of_group(group_id).get(topic.name, {})
    for partition in topic.partition_indexes:
        value = committed.get(partition)
        if value is not None and _is_of_another_topic(value, topic.topic_id):
            value = None
        partitions.append(_fetched(partition, value))
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def _is_of_another_topic(value: OffsetCommitValue, topic_id: Uuid) -> bool:
    """A topic of the same name that was deleted."""
    return ZERO_UUID not in (value.topic_id, topic_id) and value.topic_id != topic_id


def _fetched(partition: int, value: OffsetCommitValue | None) -> OffsetFetchResponsePartitions:
    if value is None:
        return OffsetFetchResponsePartitions(partition, _INVALID_OFFSET)
    return OffsetFetchResponsePartitions(partition, value.offset, value.leader_epoch, value.metadata)


# Delete ------------------------------------------------------------------------------------------------------


def delete(
    offsets: Offsets, group: Group, request: OffsetDeleteRequest
) -> tuple[list[CoordinatorRecord], OffsetDeleteResponse]:
    """Forget offsets of topics that the group does not subscribe to; raises KafkaError when the group refuses."""
    group.check_offset_delete()
    records: list[CoordinatorRecord] = []
    response = OffsetDeleteResponse()
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        response.topics.append(
            OffsetDeleteResponseTopic(
                topic.name,
                [OffsetDeleteResponsePartition(each.partition_index, error) for each in topic.partitions],
            )
        )
        if not subscribed:
            records += _tombstones(offsets, request.group_id, topic)
    return records, response


def _tombstones(offsets: Offsets, group_id: str, topic: OffsetDeleteRequestTopic) -> list[CoordinatorRecord]:
    return [
        tombstone(OffsetCommitKey(group_id, topic.name, each.partition_index))
        for each in topic.partitions
        if offsets.get(group_id, topic.name, each.partition_index) is not None
        or offsets.pending.has(group_id, topic.name, each.partition_index)
    ]
