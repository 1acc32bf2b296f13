"""Records of the assignments of streams groups (KIP-1071) in `__consumer_offsets`."""

from __future__ import annotations

from ottla.wire.schema import INT32, INT64, STRING, Message, array, field, record, structure


@record(api_key=20, versions=(0, 0))
class StreamsGroupTargetAssignmentMetadataKey(Message):
    group_id: str = field(STRING, "0")


@record(api_key=20, versions=(0, 0), flexible=0)
class StreamsGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = field(INT32)
    assignment_timestamp: int = field(INT64, tag=0, ignorable=True)


@record(api_key=21, versions=(0, 0))
class StreamsGroupTargetAssignmentMemberKey(Message):
    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


@structure
class TaskIds:
    subtopology_id: str = field(STRING)
    partitions: list[int] = array(INT32)


@record(api_key=21, versions=(0, 0), flexible=0)
class StreamsGroupTargetAssignmentMemberValue(Message):
    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)
