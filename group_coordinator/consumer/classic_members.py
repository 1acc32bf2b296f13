"""Members of a consumer group that still speak the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Their generation is their member epoch. A heartbeat tells them to join again when there is something to give up or to
take; joining is a step of reconciliation, and SyncGroup hands out what they hold. Nobody waits for anybody.
"""

from __future__ import annotations

from ottla.group_coordinator.consumer.checks import check_instance, check_room
from ottla.group_coordinator.consumer.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerProtocolSubscription,
    partitions_by_id,
    read_subscription,
    version_of,
    write_assignment,
)
from ottla.group_coordinator.consumer.context import JOIN, SESSION, SYNC, Changes, Context
from ottla.group_coordinator.consumer.downgrade import downgrade_after_replacing, may_downgrade_by_replacing
from ottla.group_coordinator.consumer.fencing import remove_members
from ottla.group_coordinator.consumer.heartbeat import replace_static_member
from ottla.group_coordinator.consumer.member import ClassicMember, ConsumerGroupMember, MemberState
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.consumer.target import Target
from ottla.group_coordinator.consumer.update import find_target, move_on, take_in_subscription
from ottla.group_coordinator.effects import GroupRequest
from ottla.wire.dataclass import replace
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_MEMBER_ID_REQUIRED_SINCE = 4


def join(
    context: Context, group: ConsumerGroup, event: GroupRequest, request: JoinGroupRequest, changes: Changes
) -> JoinGroupResponse:
    """A member joins, or joins again, with the classic protocol."""
    shortest_ms, longest_ms = context.settings.classic_session_timeouts_ms
    if not shortest_ms <= request.session_timeout_ms <= longest_ms:
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
    if context.settings.migration_policy == "disabled":
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group "
            "migration is disabled.",
        )
    member_id = request.member_id or context.new_member_id()
    check_room(group, member_id, request.group_instance_id, context.settings.max_size)
    _check_protocols(group, request, member_id)
    if (
        request.group_instance_id is None
        and not request.member_id
        and event.api_version >= _MEMBER_ID_REQUIRED_SINCE
    ):
        error = ErrorCode.MEMBER_ID_REQUIRED
        return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)

    before = group.static_member(request.group_instance_id)
    member = _find_member(group, request, member_id, before, changes)
    downgrades = before is not None and may_downgrade_by_replacing(context, group, before)
    subscription = _read_subscription(request)
    rebalance_timeout_ms = request.session_timeout_ms
    if request.rebalance_timeout_ms != -1:
        rebalance_timeout_ms = request.rebalance_timeout_ms
    updated = replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=event.client_id,
        client_host=event.client_host,
        classic=ClassicMember(
            request.session_timeout_ms, tuple((each.name, bytes(each.metadata)) for each in request.protocols)
        ),
    )
    subscribed = take_in_subscription(context, group, member, updated, changes)
    owned = partitions_by_id(subscription.owned_partitions, context.topics)
    if downgrades and before is not None:
        rebalances = group.assignment_epoch < subscribed.group_epoch
        if not rebalances:
            target = Target(group.assignment_epoch, group.target_of(member_id, updated.instance_id))
            updated = move_on(context, group, updated, target, subscribed, owned, changes)
        downgrade_after_replacing(context, group, before, updated, rebalances, changes)
    else:
        target = find_target(context, group, member, updated, subscribed, changes)
        updated = move_on(context, group, updated, target, subscribed, owned, changes)
        group.told_to_join.discard(member_id)
        changes.cancel_timers(group.group_id, member_id, (JOIN,))
        changes.set_timer(SESSION, group.group_id, member_id, request.session_timeout_ms)
        changes.set_timer(SYNC, group.group_id, member_id, rebalance_timeout_ms)
    return JoinGroupResponse(
        member_id=member_id,
        generation_id=updated.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
    )


def sync(
    context: Context, group: ConsumerGroup, request: SyncGroupRequest, changes: Changes
) -> SyncGroupResponse:
    """Hand out what the member holds."""
    member, classic = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    protocol_name, metadata = classic.protocols[0]
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        protocol_name,
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_join(group, member, changes)
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    changes.cancel_timers(group.group_id, member.member_id, (SYNC,))
    changes.set_timer(SESSION, group.group_id, member.member_id, classic.session_timeout_ms)
    assigned = {topic_id: frozenset(held) for topic_id, held in member.assigned.items()}
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(assigned, context.topics, version_of(metadata)),
    )


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, changes: Changes) -> HeartbeatResponse:
    """The member is alive; it learns whether it has to join again."""
    member, classic = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    changes.set_timer(SESSION, group.group_id, member.member_id, classic.session_timeout_ms)
    rejoins = (
        member.member_epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.is_waiting_for_others(member))
    )
    if not rejoins:
        return HeartbeatResponse()
    _expect_join(group, member, changes)
    return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def leave(
    context: Context, group: ConsumerGroup, request: LeaveGroupRequest, changes: Changes
) -> LeaveGroupResponse:
    """Members leave, or an admin removes static members by their instance ids; each gets its own answer."""
    response = LeaveGroupResponse()
    leaving: dict[str, ConsumerGroupMember] = {}
    for identity in request.members:
        answer = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
        try:
            member = _leaving_member(group, identity)
            leaving[member.member_id] = member
        except KafkaError as error:
            answer.error_code = error.code
        response.members.append(answer)
    remove_members(context, group, list(leaving.values()), changes)
    return response


def _expect_join(group: ConsumerGroup, member: ConsumerGroupMember, changes: Changes) -> None:
    """The member has its rebalance timeout to join again, from when it was first told."""
    if member.member_id not in group.told_to_join:
        group.told_to_join.add(member.member_id)
        changes.set_timer(JOIN, group.group_id, member.member_id, member.rebalance_timeout_ms)


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerGroupMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    static = group.static_member(identity.group_instance_id)
    expected = identity.member_id or ("" if static is None else static.member_id)
    return check_instance(static, expected, identity.group_instance_id)


def _find_member(
    group: ConsumerGroup,
    request: JoinGroupRequest,
    member_id: str,
    before: ConsumerGroupMember | None,
    changes: Changes,
) -> ConsumerGroupMember:
    if request.group_instance_id is None or (before is None and not request.member_id):
        return group.members.get(member_id, ConsumerGroupMember(member_id))
    if request.member_id:
        return check_instance(before, member_id, request.group_instance_id)
    assert before is not None
    return replace_static_member(group, before, member_id, changes)


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerGroupMember, ClassicMember]:
    """The member, if it speaks the classic protocol."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = check_instance(group.static_member(instance_id), member_id, instance_id)
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol."
        )
    return member, member.classic


def _check_generation(member: ConsumerGroupMember, generation_id: int) -> None:
    if member.member_epoch != generation_id:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation_id} is not equal to the member epoch {member.member_epoch} "
            f"of member {member.member_id}.",
        )


def _check_protocols(group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> None:
    """One of its protocols must be one that all classic members of the group support."""
    names = [protocol.name for protocol in request.protocols]
    supported = any(group.classic_protocols[name] == group.classic_member_count for name in names)
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not supported:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported."
        )


def _read_subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(bytes(request.protocols[0].metadata))
    except MalformedMessage as error:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            "Malformed embedded consumer protocol in subscription deserialization.",
        ) from error
