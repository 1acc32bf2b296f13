"""JoinGroup: how members come into a classic group and into its generations.

A new dynamic member gets its id first and has to come back with it (version 4 and later), so that a client that retries
does not become many members. A static member that comes back takes the place of its former self, without a
rebalance when nothing else changes.
"""

from __future__ import annotations

from ottla.group_coordinator.classic.group import ClassicGroup, ClassicMember, GroupState
from ottla.group_coordinator.classic.rebalance import (
    answer_join,
    complete_join_if_all_joined,
    extend_session,
    joined_response,
    members_for_leader,
    prepare_rebalance,
    rebalance_or_complete_join,
    session_timer,
)
from ottla.group_coordinator.classic.record import group_record
from ottla.group_coordinator.effects import GroupRequest
from ottla.group_coordinator.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from ottla.group_coordinator.turn import Turn
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupResponse

_MEMBER_ID_REQUIRED_SINCE = 4
_SKIP_ASSIGNMENT_SINCE = 9


def join(turn: Turn, group: ClassicGroup, event: GroupRequest, request: JoinGroupRequest) -> None:
    """Answer the request, or park it until the group's next generation."""
    member_id = request.member_id
    if not _has_room(group, member_id, turn.settings.max_size):
        if member_id in group.members or member_id in group.pending_join:
            turn.cancel_timer(session_timer(group, member_id))
        group.remove(member_id)
        turn.reply(event.waiter, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
        complete_join_if_all_joined(turn, group)
    elif not group.supports(request.protocol_type, request.protocols):
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        turn.reply(event.waiter, JoinGroupResponse(error_code=error, member_id=member_id))
    elif not member_id:
        _join_new(turn, group, event, request)
    elif member_id in group.pending_join and request.group_instance_id is None:
        _add(turn, group, event, request, member_id)
    else:
        _join_again(turn, group, event, request)


def _has_room(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    if group.is_empty:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        # Counting those who wait lets a group that is too large shrink: the last ones do not get in again.
        return (member is not None and member.join_waiter is not None) or group.awaiting_join < max_size
    return member is not None or len(group.members) < max_size


# New members -------------------------------------------------------------------------------------------------


def _join_new(turn: Turn, group: ClassicGroup, event: GroupRequest, request: JoinGroupRequest) -> None:
    instance_id = request.group_instance_id
    member_id = f"{event.client_id if instance_id is None else instance_id}-{turn.new_id()}"
    if instance_id is not None and instance_id in group.static_members:
        _replace_static(turn, group, event, request, member_id)
    elif instance_id is None and event.api_version >= _MEMBER_ID_REQUIRED_SINCE:
        group.pending_join.add(member_id)
        turn.set_timer(session_timer(group, member_id), request.session_timeout_ms)
        error = ErrorCode.MEMBER_ID_REQUIRED
        turn.reply(event.waiter, JoinGroupResponse(error_code=error, member_id=member_id))
    else:
        _add(turn, group, event, request, member_id)


def _add(
    turn: Turn, group: ClassicGroup, event: GroupRequest, request: JoinGroupRequest, member_id: str
) -> None:
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        event.client_id,
        event.client_host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocol_type,
        request.protocols,
        join_waiter=event.waiter,
        is_new=True,
    )
    group.new_member_added = True
    group.add(member)
    turn.set_timer(session_timer(group, member_id), NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete_join(turn, group)


def _replace_static(
    turn: Turn, group: ClassicGroup, event: GroupRequest, request: JoinGroupRequest, new_member_id: str
) -> None:
    """The instance has restarted: its former self is fenced, and the new one has its place."""
    assert request.group_instance_id is not None
    old_member_id = group.static_members[request.group_instance_id]
    member = group.members[old_member_id]
    _fence(turn, group, member)
    former_leader = group.leader_id
    group.replace_static(member, new_member_id)
    extend_session(turn, group, member)
    _update(turn, group, member, event, request)
    if group.state is GroupState.STABLE:
        if group.select_protocol() == group.protocol_name:
            turn.append([group_record(group)])
            response = _back_in_generation(group, member, event.api_version, former_leader)
            answer_join(turn, group, member, response)
        else:
            prepare_rebalance(turn, group)
    elif group.state is GroupState.COMPLETING_REBALANCE:
        # The leader may be assigning to the old id just now.
        prepare_rebalance(turn, group)
    else:
        complete_join_if_all_joined(turn, group)


def _fence(turn: Turn, group: ClassicGroup, member: ClassicMember) -> None:
    turn.cancel_timer(session_timer(group, member.member_id))
    fenced = ErrorCode.FENCED_INSTANCE_ID
    answer_join(
        turn,
        group,
        member,
        JoinGroupResponse(error_code=fenced, member_id=member.member_id, protocol_name=None),
    )
    if member.sync_waiter is not None:
        turn.reply(member.sync_waiter, SyncGroupResponse(error_code=fenced))
        member.sync_waiter = None


def _back_in_generation(
    group: ClassicGroup, member: ClassicMember, api_version: int, former_leader: str | None
) -> JoinGroupResponse:
    """The generation goes on. A leader that can be told to skip the assignment learns that it leads; an older one is
    told its own former id, so that it takes itself for a follower and assigns nothing."""
    response = joined_response(group, member.member_id)
    if api_version < _SKIP_ASSIGNMENT_SINCE:
        response.leader = former_leader or ""
    elif group.leader_id == member.member_id:
        response.skip_assignment = True
        response.members = members_for_leader(group)
    return response


# Members that are known --------------------------------------------------------------------------------------


def _join_again(turn: Turn, group: ClassicGroup, event: GroupRequest, request: JoinGroupRequest) -> None:
    try:
        member = group.check_member(request.member_id, request.group_instance_id)
    except KafkaError as error:
        turn.reply(
            event.waiter,
            JoinGroupResponse(error_code=error.code, member_id=request.member_id, protocol_name=None),
        )
        return
    if _needs_rebalance(group, member, request):
        _update(turn, group, member, event, request)
        rebalance_or_complete_join(turn, group)
    else:
        # It did not get its answer, or it only wants to make sure.
        turn.reply(event.waiter, joined_response(group, member.member_id))


def _needs_rebalance(group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest) -> bool:
    if group.state is GroupState.PREPARING_REBALANCE or member.protocols != request.protocols:
        return True
    # The leader asks for a rebalance by joining again: it watches what the coordinator does not know of.
    return group.state is GroupState.STABLE and member.member_id == group.leader_id


def _update(
    turn: Turn, group: ClassicGroup, member: ClassicMember, event: GroupRequest, request: JoinGroupRequest
) -> None:
    if member.join_waiter is not None:
        # The member gave up on its former request, which nobody reads any more, and came again.
        turn.reply(member.join_waiter, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    group.set_protocols(member, request.protocols)
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.session_timeout_ms = request.session_timeout_ms
    member.join_waiter = event.waiter
