"""SyncGroup, Heartbeat and LeaveGroup: what members of a classic group say once they have joined."""

from __future__ import annotations

from ottla.group_coordinator.classic.group import ClassicGroup, ClassicMember, GroupState
from ottla.group_coordinator.classic.rebalance import (
    SYNC_TIMER,
    answer_syncs,
    complete_join_if_all_joined,
    extend_session,
    forget_member,
    prepare_rebalance,
    session_timer,
    sync_response,
)
from ottla.group_coordinator.classic.record import group_record
from ottla.group_coordinator.effects import GroupRequest, TimerKey
from ottla.group_coordinator.turn import Turn
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync(turn: Turn, group: ClassicGroup, event: GroupRequest, request: SyncGroupRequest) -> None:
    """Take the leader's assignment, or park the member until it is there."""
    try:
        member = _check_sync(group, request)
    except KafkaError as error:
        turn.reply(event.waiter, SyncGroupResponse(error_code=error.code))
        return
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        turn.cancel_timer(TimerKey(SYNC_TIMER, group.group_id))
    if group.state is GroupState.STABLE:
        turn.reply(event.waiter, sync_response(group, member, ErrorCode.NONE))
        return
    if member.sync_waiter is not None:
        turn.reply(member.sync_waiter, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_waiter = event.waiter
    if member.member_id == group.leader_id:
        assigned = {each.member_id: each.assignment for each in request.assignments}
        for each in group.members.values():
            each.assignment = assigned.get(each.member_id, b"")
        turn.append([group_record(group)])
        group.transition_to(GroupState.STABLE, turn.now_ms)
        answer_syncs(turn, group)


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> ClassicMember:
    if group.is_empty:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if _differ(request.protocol_type, group.protocol_type) or _differ(
        request.protocol_name, group.protocol_name
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    return member


def _differ(told: str | None, known: str | None) -> bool:
    return told is not None and known is not None and told != known


def heartbeat(turn: Turn, group: ClassicGroup, event: GroupRequest, request: HeartbeatRequest) -> None:
    try:
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    except KafkaError as error:
        turn.reply(event.waiter, HeartbeatResponse(error_code=error.code))
        return
    extend_session(turn, group, member)
    rebalancing = group.state is GroupState.PREPARING_REBALANCE
    error_code = ErrorCode.REBALANCE_IN_PROGRESS if rebalancing else ErrorCode.NONE
    turn.reply(event.waiter, HeartbeatResponse(error_code=error_code))


def leave(turn: Turn, group: ClassicGroup, event: GroupRequest, request: LeaveGroupRequest) -> None:
    """Take members out, each with its own result, then rebalance once."""
    results = [_leave_one(turn, group, identity) for identity in request.members]
    if any(result.error_code == ErrorCode.NONE for result in results):
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            prepare_rebalance(turn, group)
        else:
            complete_join_if_all_joined(turn, group)
    turn.reply(event.waiter, LeaveGroupResponse(members=results))


def _leave_one(turn: Turn, group: ClassicGroup, identity: MemberIdentity) -> MemberResponse:
    result = MemberResponse(identity.member_id, identity.group_instance_id)
    try:
        if identity.member_id in group.pending_join:
            turn.cancel_timer(session_timer(group, identity.member_id))
            group.remove(identity.member_id)
        elif identity.member_id:
            forget_member(turn, group, group.check_member(identity.member_id, identity.group_instance_id))
        else:
            # An admin removes an instance without knowing its member id.
            member_id = group.static_members.get(identity.group_instance_id or "", "")
            forget_member(turn, group, group.check_member(member_id, None))
    except KafkaError as error:
        result.error_code = error.code
    return result
