"""ConsumerGroupHeartbeat: join, stay, and leave (KIP-848), as Kafka 4.3 answers versions 0 and 1."""

from __future__ import annotations

from typing import Any

from ottla.group_coordinator.consumer import new_records
from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.checks import (
    check_epoch,
    check_instance,
    check_instance_released,
    check_room,
)
from ottla.group_coordinator.consumer.context import SESSION, Changes, Context
from ottla.group_coordinator.consumer.fencing import remove_members
from ottla.group_coordinator.consumer.member import (
    LEAVE_STATIC_EPOCH,
    NOTHING,
    ConsumerGroupMember,
    Held,
)
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.consumer.update import find_target, move_on, take_in_subscription
from ottla.group_coordinator.effects import GroupRequest
from ottla.wire.dataclass import replace
from ottla.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def heartbeat(
    context: Context,
    group: ConsumerGroup,
    event: GroupRequest,
    request: ConsumerGroupHeartbeatRequest,
    changes: Changes,
) -> ConsumerGroupHeartbeatResponse:
    """A member joins with epoch 0, or shows that it is alive and what it owns."""
    times = context.settings.times_of(group.group_id)
    known = group.members.get(request.member_id)
    if known is None:
        check_room(group, request.member_id, request.instance_id, context.settings.max_size)
    elif _has_arrived(group, known, changes.now_ms) and _says_nothing_new(known, event, request):
        changes.set_timer(SESSION, group.group_id, known.member_id, times.session_timeout_ms)
        return ConsumerGroupHeartbeatResponse(
            member_id=known.member_id,
            member_epoch=known.member_epoch,
            heartbeat_interval_ms=times.heartbeat_interval_ms,
        )
    joins = request.member_epoch == 0
    member_id = request.member_id or context.new_member_id()
    owned = _owned(request.topic_partitions)
    member = _find_member(group, request, member_id, owned, changes)

    updated = _with_news(member, event, request)
    subscribed = take_in_subscription(context, group, member, updated, changes)
    target = find_target(context, group, member, updated, subscribed, changes)
    moved = move_on(context, group, updated, target, subscribed, owned, changes)

    changes.set_timer(SESSION, group.group_id, member_id, times.session_timeout_ms)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=moved.member_epoch,
        heartbeat_interval_ms=times.heartbeat_interval_ms,
    )
    if joins or _is_full(request) or moved.assigned != member.assigned:
        response.assignment = _assignment(moved.assigned)
    return response


def _has_arrived(group: ConsumerGroup, member: ConsumerGroupMember, now_ms: int) -> bool:
    """Is there nothing to do for the group, and nothing that the member still has to give up or to get?"""
    return (
        group.assignment_epoch == group.group_epoch
        and member.is_reconciled_to(group.assignment_epoch)
        and not group.regex_counts
        and not group.needs_refresh(now_ms)
    )


def _says_nothing_new(
    member: ConsumerGroupMember, event: GroupRequest, request: ConsumerGroupHeartbeatRequest
) -> bool:
    """Nearly all heartbeats only show that the member is alive; they pass by everything else."""
    return (
        request.member_epoch == member.member_epoch
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.instance_id == member.instance_id
        and request.rack_id is None
        and request.server_assignor is None
        and request.rebalance_timeout_ms == -1
        and event.client_id == member.client_id
        and event.client_host == member.client_host
        and member.classic is None
    )


def _with_news(
    member: ConsumerGroupMember, event: GroupRequest, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupMember:
    """The member with what the request says about it; most heartbeats say nothing new."""
    news = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        "server_assignor": request.server_assignor,
        "topic_regex": request.subscribed_topic_regex,
        "client_id": event.client_id,
        "client_host": event.client_host,
    }
    changed: dict[str, Any] = {
        name: value for name, value in news.items() if value is not None and value != getattr(member, name)
    }
    if request.subscribed_topic_names is not None:
        changed["topic_names"] = frozenset(request.subscribed_topic_names)
    if member.uses_classic_protocol:
        changed["classic"] = None
    return replace(member, **changed) if changed else member


def leave(
    context: Context, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, changes: Changes
) -> ConsumerGroupHeartbeatResponse:
    """A member leaves for good, or a static one for a while: it keeps its partitions until its session ends."""
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        static = group.static_member(request.instance_id)
        member = check_instance(static, request.member_id, request.instance_id)
    if request.instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
        # What it holds counts as held from epoch 0 by whoever takes its place.
        away = replace(
            member,
            member_epoch=LEAVE_STATIC_EPOCH,
            pending_revocation=NOTHING,
            assigned={topic_id: dict.fromkeys(held, 0) for topic_id, held in member.assigned.items()},
        )
        changes.add([new_records.current_assignment(group.group_id, away)])
    else:
        remove_members(context, group, [member], changes)
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def _find_member(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    owned: Partitions | None,
    changes: Changes,
) -> ConsumerGroupMember:
    """The member that the heartbeat is of; a joining one may be new, or take the place of a static one."""
    joins = request.member_epoch == 0
    if request.instance_id is None:
        if joins and member_id not in group.members:
            return ConsumerGroupMember(member_id)
        member = group.member(member_id)
        check_epoch(member, request.member_epoch, owned)
        return member
    static = group.static_member(request.instance_id)
    if not joins:
        static = check_instance(static, member_id, request.instance_id)
        check_epoch(static, request.member_epoch, owned)
        return static
    if static is None:
        return group.members.get(member_id, ConsumerGroupMember(member_id))
    if not static.uses_classic_protocol:
        check_instance_released(static, member_id)
    return replace_static_member(group, static, member_id, changes)


def replace_static_member(
    group: ConsumerGroup, before: ConsumerGroupMember, member_id: str, changes: Changes
) -> ConsumerGroupMember:
    """Give the place of a static member, with its target and what it holds, to a new member id."""
    member = replace(before, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    changes.add(new_records.member_tombstones(group.group_id, before.member_id))
    changes.add(
        [
            new_records.member_metadata(group.group_id, member),
            new_records.target_of_member(group.group_id, member_id, group.target_of(before.member_id)),
            new_records.current_assignment(group.group_id, member),
        ]
    )
    return member


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Does the member tell everything, because it may have missed an answer?"""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _owned(topics: list[TopicPartitions] | None) -> Partitions | None:
    if topics is None:
        return None
    owned: dict[bytes, frozenset[int]] = {}
    for topic in topics:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()) | frozenset(topic.partitions)
    return owned


def _assignment(held: Held) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(held[topic_id])) for topic_id in sorted(held)
        ]
    )
