"""The front door of this family: events of consumer groups in, effects out.

The shard decides whose event it is; every request that comes here is answered by exactly one Reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.group_coordinator.consumer import classic_members
from ottla.group_coordinator.consumer.checks import check_request
from ottla.group_coordinator.consumer.context import REBALANCE, SESSION, Changes, Context
from ottla.group_coordinator.consumer.fencing import fence_on_timer
from ottla.group_coordinator.consumer.heartbeat import heartbeat, leave
from ottla.group_coordinator.consumer.member import LEAVE_EPOCH, LEAVE_STATIC_EPOCH, MemberState
from ottla.group_coordinator.consumer.state import REFRESH_NOW, ConsumerGroup
from ottla.group_coordinator.consumer.upgrade import ClassicGroups, find_or_make_group
from ottla.group_coordinator.effects import Effect, GroupRequest, Reply, TimerKey, TopicsChanged
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.schema import Message


def answer_heartbeat(
    context: Context, classic: ClassicGroups, event: GroupRequest, now_ms: int
) -> list[Effect]:
    """ConsumerGroupHeartbeat, whether or not there is such a group yet."""
    request = event.message
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    changes = Changes(now_ms)
    try:
        check_request(request, event.api_version, context.settings.assignors)
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            response = leave(context, _existing_group(context, classic, request.group_id), request, changes)
        else:
            joins = request.member_epoch == 0
            group = find_or_make_group(context, classic, request.group_id, joins, changes)
            response = heartbeat(context, group, event, request, changes)
            if context.group(request.group_id) is None and classic.view(request.group_id) is not None:
                classic.release(request.group_id)
    except KafkaError as error:
        refusal = ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
        return [Reply(event.waiter, refusal)]
    return changes.effects(Reply(event.waiter, response))


def answer_classic_request(
    context: Context, group: ConsumerGroup, event: GroupRequest, now_ms: int
) -> list[Effect]:
    """JoinGroup, SyncGroup, Heartbeat or LeaveGroup to a consumer group that has members."""
    changes = Changes(now_ms)
    try:
        response = _CLASSIC_ANSWERS[type(event.message)](context, group, event, changes)
    except KafkaError as error:
        return [Reply(event.waiter, _classic_refusal(event.message, error.code))]
    return changes.effects(Reply(event.waiter, response))


def timer_fired(context: Context, key: TimerKey, now_ms: int) -> list[Effect]:
    """A member's session is over, or it took too long to give up, to join or to sync."""
    changes = Changes(now_ms)
    fence_on_timer(context, key, changes)
    return changes.effects()


def topics_changed(context: Context, event: TopicsChanged) -> None:
    """The next heartbeat of each group that reads one of them looks at the topics again."""
    if event.created_or_grown:
        context.regexes.topics_created()
    changed = event.created_or_grown | event.deleted
    for group in context.consumer_groups():
        if any(group.is_subscribed_to(topic) for topic in changed):
            group.refresh_deadline = REFRESH_NOW


def start_timers(context: Context, now_ms: int) -> list[Effect]:
    """After replay: everybody has a whole session, and its rebalance timeout, to show up again."""
    changes = Changes(now_ms)
    for group in context.consumer_groups():
        session_timeout_ms = context.settings.times_of(group.group_id).session_timeout_ms
        for member in group.members.values():
            changes.set_timer(SESSION, group.group_id, member.member_id, session_timeout_ms)
            if member.state is MemberState.UNREVOKED_PARTITIONS and not member.uses_classic_protocol:
                changes.set_timer(REBALANCE, group.group_id, member.member_id, member.rebalance_timeout_ms)
    return changes.effects()


def _existing_group(context: Context, classic: ClassicGroups, group_id: str) -> ConsumerGroup:
    group = context.group(group_id)
    if group is None:
        reason = "not found" if classic.view(group_id) is None else "is not a consumer group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
    return group


def _join(context: Context, group: ConsumerGroup, event: GroupRequest, changes: Changes) -> Message:
    assert isinstance(event.message, JoinGroupRequest)
    return classic_members.join(context, group, event, event.message, changes)


def _sync(context: Context, group: ConsumerGroup, event: GroupRequest, changes: Changes) -> Message:
    assert isinstance(event.message, SyncGroupRequest)
    return classic_members.sync(context, group, event.message, changes)


def _heartbeat(_: Context, group: ConsumerGroup, event: GroupRequest, changes: Changes) -> Message:
    assert isinstance(event.message, HeartbeatRequest)
    return classic_members.heartbeat(group, event.message, changes)


def _leave(context: Context, group: ConsumerGroup, event: GroupRequest, changes: Changes) -> Message:
    assert isinstance(event.message, LeaveGroupRequest)
    return classic_members.leave(context, group, event.message, changes)


_CLASSIC_ANSWERS: Final[
    Mapping[type[Message], Callable[[Context, ConsumerGroup, GroupRequest, Changes], Message]]
] = {
    JoinGroupRequest: _join,
    SyncGroupRequest: _sync,
    HeartbeatRequest: _heartbeat,
    LeaveGroupRequest: _leave,
}


def _classic_refusal(request: Any, code: ErrorCode) -> Message:
    if isinstance(request, JoinGroupRequest):
        keeps_id = code is ErrorCode.INVALID_SESSION_TIMEOUT
        member_id = request.member_id if keeps_id else ""
        return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)
    if isinstance(request, SyncGroupRequest):
        return SyncGroupResponse(error_code=code)
    if isinstance(request, HeartbeatRequest):
        return HeartbeatResponse(error_code=code)
    return LeaveGroupResponse(error_code=code)
