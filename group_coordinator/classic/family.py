"""The events of classic groups: requests to existing groups or new ones, and their timers."""

from __future__ import annotations

from collections.abc import MutableMapping

from ottla.group_coordinator.classic import join as joining
from ottla.group_coordinator.classic import rebalance, sync
from ottla.group_coordinator.classic.group import ClassicGroup, GroupState
from ottla.group_coordinator.classic.record import new_group_record
from ottla.group_coordinator.effects import GroupRequest, TimerKey
from ottla.group_coordinator.group import Committer, Group
from ottla.group_coordinator.turn import Turn
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Groups = MutableMapping[str, Group]
ClassicRequest = JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest


def handle_classic(turn: Turn, groups: Groups, event: GroupRequest, request: ClassicRequest) -> None:
    """A request to a classic group, or to none."""
    group = groups.get(request.group_id)
    if isinstance(request, JoinGroupRequest):
        _join(turn, groups, group, event, request)
    elif not isinstance(group, ClassicGroup):
        turn.reply(event.waiter, _unknown_group(request))
    elif isinstance(request, SyncGroupRequest):
        sync.sync(turn, group, event, request)
    elif isinstance(request, HeartbeatRequest):
        sync.heartbeat(turn, group, event, request)
    else:
        sync.leave(turn, group, event, request)


def _join(
    turn: Turn, groups: Groups, group: Group | None, event: GroupRequest, request: JoinGroupRequest
) -> None:
    settings = turn.settings
    response = JoinGroupResponse(member_id=request.member_id)
    if not settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms:
        response.error_code = ErrorCode.INVALID_SESSION_TIMEOUT
    elif group is None and request.member_id:
        response.error_code = ErrorCode.UNKNOWN_MEMBER_ID
    elif group is not None and not isinstance(group, ClassicGroup) and not group.is_empty:
        response = JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if response.error_code:
        turn.reply(event.waiter, response)
        return
    if event.api_version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    if isinstance(group, ClassicGroup):
        joining.join(turn, group, event, request)
        return
    # An empty group of another kind makes room. The log knows of the new one even while its first members are
    # still finding each other.
    former = group.tombstones() if group is not None else []
    new_group = groups[request.group_id] = ClassicGroup(request.group_id, state_timestamp_ms=turn.now_ms)
    turn.append([*former, new_group_record(new_group)])
    joining.join(turn, new_group, event, request)


def classic_timer_fired(turn: Turn, group: ClassicGroup, key: TimerKey) -> None:
    if key.kind == rebalance.JOIN_TIMER:
        rebalance.join_timer_fired(turn, group)
    elif key.kind == rebalance.SYNC_TIMER:
        rebalance.sync_timer_fired(turn, group)
    else:
        rebalance.session_expired(turn, group, key.member_id)


def offsets_committed(turn: Turn, group: ClassicGroup, committer: Committer) -> None:
    """Who commits is alive."""
    member = group.members.get(committer.member_id)
    if member is not None and group.state is not GroupState.COMPLETING_REBALANCE:
        rebalance.extend_session(turn, group, member)


def resume(turn: Turn, group: ClassicGroup) -> None:
    """The group has been loaded: its members have their session timeouts to show up."""
    for member in group.members.values():
        rebalance.extend_session(turn, group, member)
    if len(group.members) > turn.settings.max_size:
        rebalance.prepare_rebalance(turn, group)


def retire(turn: Turn, group: ClassicGroup) -> None:
    """The group is being deleted: nothing of it may fire any more."""
    for member_id in group.pending_join:
        turn.cancel_timer(rebalance.session_timer(group, member_id))


def _unknown_group(
    request: SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest,
) -> SyncGroupResponse | HeartbeatResponse | LeaveGroupResponse:
    error = ErrorCode.UNKNOWN_MEMBER_ID
    if isinstance(request, SyncGroupRequest):
        return SyncGroupResponse(error_code=error)
    if isinstance(request, HeartbeatRequest):
        return HeartbeatResponse(error_code=error)
    return LeaveGroupResponse(
        members=[MemberResponse(each.member_id, each.group_instance_id, error) for each in request.members]
    )
