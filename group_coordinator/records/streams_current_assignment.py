"""Records of what members of streams groups (KIP-1071) hold, in `__consumer_offsets`."""

from __future__ import annotations

from ottla.wire.schema import INT8, INT32, STRING, Message, array, field, record, structure


@record(api_key=22, versions=(0, 0))
class StreamsGroupCurrentMemberAssignmentKey(Message):
    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


@structure
class TaskIds:
    subtopology_id: str = field(STRING)
    partitions: list[int] = array(INT32)
    assignment_epochs: list[int] | None = array(INT32, nullable="0+", tag=0)


@record(api_key=22, versions=(0, 0), flexible=0)
class StreamsGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = field(INT32)
    previous_member_epoch: int = field(INT32)
    state: int = field(INT8)
    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)
    active_tasks_pending_revocation: list[TaskIds] = array(TaskIds)
    standby_tasks_pending_revocation: list[TaskIds] = array(TaskIds)
    warmup_tasks_pending_revocation: list[TaskIds] = array(TaskIds)
