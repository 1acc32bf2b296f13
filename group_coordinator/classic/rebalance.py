"""The rebalance of a classic group: waiting for members to join, the next generation, waiting for them to sync.

Timers of a group: `classic.join` ends the waiting for members, `classic.sync` the waiting for their SyncGroup,
`classic.session` is a member's session.
"""

from __future__ import annotations

from ottla.group_coordinator.classic.group import ClassicGroup, ClassicMember, GroupState
from ottla.group_coordinator.classic.record import group_record
from ottla.group_coordinator.effects import TimerKey
from ottla.group_coordinator.turn import Turn
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.sync_group import SyncGroupResponse

JOIN_TIMER = "classic.join"
SYNC_TIMER = "classic.sync"
SESSION_TIMER = "classic.session"


def session_timer(group: ClassicGroup, member_id: str) -> TimerKey:
    return TimerKey(SESSION_TIMER, group.group_id, member_id)


def extend_session(turn: Turn, group: ClassicGroup, member: ClassicMember) -> None:
    turn.set_timer(session_timer(group, member.member_id), member.session_timeout_ms)


# Joining -----------------------------------------------------------------------------------------------------


def rebalance_or_complete_join(turn: Turn, group: ClassicGroup) -> None:
    """Something about the members changed."""
    if group.can_rebalance:
        prepare_rebalance(turn, group)
    else:
        complete_join_if_all_joined(turn, group)


def prepare_rebalance(turn: Turn, group: ClassicGroup) -> None:
    """Begin a rebalance: everyone has to join anew."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            member.assignment = b""
        answer_syncs(turn, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    turn.cancel_timer(TimerKey(SYNC_TIMER, group.group_id))
    is_first = group.is_empty
    group.transition_to(GroupState.PREPARING_REBALANCE, turn.now_ms)
    if is_first:
        # Its members probably start at the same time: wait for the others, so that one rebalance is enough.
        delay_ms = turn.settings.initial_rebalance_delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.new_member_added = False
        _wait_initially(turn, group, delay_ms)
    elif group.all_joined:
        complete_join(turn, group)
    else:
        turn.set_timer(TimerKey(JOIN_TIMER, group.group_id), group.rebalance_timeout_ms)


def complete_join_if_all_joined(turn: Turn, group: ClassicGroup) -> None:
    waits_initially = group.previous_state is GroupState.EMPTY
    if group.state is GroupState.PREPARING_REBALANCE and not waits_initially and group.all_joined:
        complete_join(turn, group)


def join_timer_fired(turn: Turn, group: ClassicGroup) -> None:
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    if group.initial_delay_ms is None:
        complete_join(turn, group)
    elif group.new_member_added and group.initial_remaining_ms:
        group.new_member_added = False
        delay_ms = min(turn.settings.initial_rebalance_delay_ms, group.initial_remaining_ms)
        group.initial_remaining_ms = max(group.initial_remaining_ms - group.initial_delay_ms, 0)
        _wait_initially(turn, group, delay_ms)
    else:
        complete_join(turn, group)


def _wait_initially(turn: Turn, group: ClassicGroup, delay_ms: int) -> None:
    group.initial_delay_ms = delay_ms
    turn.set_timer(TimerKey(JOIN_TIMER, group.group_id), delay_ms)


def complete_join(turn: Turn, group: ClassicGroup) -> None:
    """Begin the next generation with those who joined."""
    turn.cancel_timer(TimerKey(JOIN_TIMER, group.group_id))
    group.initial_delay_ms = None
    for member in list(group.members.values()):
        if member.join_waiter is None and not member.is_static:
            group.remove(member.member_id)
            turn.cancel_timer(session_timer(group, member.member_id))
    if group.members and not _has_joined_leader(group):
        # Only static members are left and none has come back: they have until their sessions end.
        turn.set_timer(TimerKey(JOIN_TIMER, group.group_id), group.rebalance_timeout_ms)
        return
    _next_generation(turn, group)


def _has_joined_leader(group: ClassicGroup) -> bool:
    """Whether the leader joined, electing another one if it did not."""
    leader = group.members.get(group.leader_id or "")
    if leader is None or leader.join_waiter is None:
        joined = next((each for each in group.members.values() if each.join_waiter is not None), None)
        if joined is None:
            return False
        group.leader_id = joined.member_id
    return True


def _next_generation(turn: Turn, group: ClassicGroup) -> None:
    group.generation_id += 1
    group.pending_sync.clear()
    if not group.members:
        group.protocol_name = None
        group.update_topics()
        group.transition_to(GroupState.EMPTY, turn.now_ms)
        turn.append([group_record(group)])
        return
    group.protocol_name = group.select_protocol()
    group.update_topics()
    group.transition_to(GroupState.COMPLETING_REBALANCE, turn.now_ms)
    for member in group.members.values():
        answer_join(turn, group, member, joined_response(group, member.member_id))
        extend_session(turn, group, member)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    turn.set_timer(TimerKey(SYNC_TIMER, group.group_id), group.rebalance_timeout_ms)


# Answers -----------------------------------------------------------------------------------------------------


def joined_response(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """Welcome to the generation; the leader gets to know everybody."""
    members = []
    if member_id == group.leader_id and group.state is GroupState.COMPLETING_REBALANCE:
        members = members_for_leader(group)
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member_id,
        members=members,
    )


def members_for_leader(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(each.member_id, each.group_instance_id, each.metadata(group.protocol_name))
        for each in group.members.values()
    ]


def answer_join(turn: Turn, group: ClassicGroup, member: ClassicMember, response: JoinGroupResponse) -> None:
    if member.join_waiter is not None:
        turn.reply(member.join_waiter, response)
        member.join_waiter = None


def answer_syncs(turn: Turn, group: ClassicGroup, error: ErrorCode = ErrorCode.NONE) -> None:
    """Answer everyone who waits for an assignment; the wait did not count against their sessions."""
    for member in group.members.values():
        if member.sync_waiter is not None:
            turn.reply(member.sync_waiter, sync_response(group, member, error))
            member.sync_waiter = None
            extend_session(turn, group, member)


def sync_response(group: ClassicGroup, member: ClassicMember, error: ErrorCode) -> SyncGroupResponse:
    if error is not ErrorCode.NONE:
        return SyncGroupResponse(error_code=error)
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


# Members that go ---------------------------------------------------------------------------------------------


def forget_member(turn: Turn, group: ClassicGroup, member: ClassicMember) -> None:
    """Take the member out; who still waits for it learns that it is unknown now and may come again."""
    turn.cancel_timer(session_timer(group, member.member_id))
    unknown = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    answer_join(turn, group, member, unknown)
    if member.sync_waiter is not None:
        turn.reply(member.sync_waiter, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        member.sync_waiter = None
    group.remove(member.member_id)


def session_expired(turn: Turn, group: ClassicGroup, member_id: str) -> None:
    member = group.members.get(member_id)
    if member_id in group.pending_join:
        group.remove(member_id)
        if group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
            complete_join(turn, group)
    elif member is not None and not member.satisfies_heartbeat:
        forget_member(turn, group, member)
        if group.can_rebalance:
            prepare_rebalance(turn, group)
        elif group.all_joined:
            complete_join(turn, group)


def sync_timer_fired(turn: Turn, group: ClassicGroup) -> None:
    """Who joined and never synced has gone."""
    syncing = group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
    if syncing and group.pending_sync:
        for member_id in list(group.pending_sync):
            turn.cancel_timer(session_timer(group, member_id))
            forget_member(turn, group, group.members[member_id])
        prepare_rebalance(turn, group)
