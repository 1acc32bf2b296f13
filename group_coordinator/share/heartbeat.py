"""ShareGroupHeartbeat: join, stay, and leave a share group (KIP-932), as Kafka 4.3 answers version 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, MutableMapping
from typing import Final

from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, MemberSpec, Partitions
from ottla.group_coordinator.consumer.metadata_hash import metadata_hash
from ottla.group_coordinator.consumer.state import RefreshDeadline
from ottla.group_coordinator.consumer.subscriptions import topic_ids_of
from ottla.group_coordinator.consumer.target import may_assign_again
from ottla.group_coordinator.effects import GroupRequest, InitializeShareState, ShareMemberGone, TimerKey
from ottla.group_coordinator.group import Group
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.share import new_records
from ottla.group_coordinator.share.assignor import assign_simple
from ottla.group_coordinator.share.settings import ShareGroupSettings
from ottla.group_coordinator.share.state import NO_PARTITIONS, ShareGroup, ShareGroupMember
from ottla.group_coordinator.share.state_changes import (
    has_unassigned,
    topics_to_initialize,
    with_initializing,
)
from ottla.group_coordinator.topics import Topics
from ottla.group_coordinator.turn import Turn
from ottla.wire.dataclass import dataclass, replace
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

SESSION: Final = "share.session"
LEAVE_EPOCH: Final = -1
_REFRESH_INTERVAL_MS: Final = 0x7FFFFFFF  # as Kafka: topics are looked at when they change


@dataclass(frozen=True, slots=True)
class ShareContext:
    """The surroundings of the share groups of one shard."""

    groups: MutableMapping[str, Group]
    settings: ShareGroupSettings
    topics: Topics
    new_id: Callable[[], str]


def heartbeat(context: ShareContext, turn: Turn, event: GroupRequest) -> None:
    """Answer one heartbeat."""
    request = event.message
    assert isinstance(request, ShareGroupHeartbeatRequest)
    try:
        _check_request(request)
        if request.member_epoch == LEAVE_EPOCH:
            response = _leave(context, turn, request)
        else:
            response = _stay(context, turn, event, request)
    except KafkaError as error:
        response = ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
    turn.reply(event.waiter, response)


def _check_request(request: ShareGroupHeartbeatRequest) -> None:
    for text, name in (
        (request.member_id, "MemberId"),
        (request.group_id, "GroupId"),
        (request.rack_id, "RackId"),
    ):
        if text is not None and not text.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def find_group(groups: MutableMapping[str, Group], group_id: str) -> ShareGroup:
    """The share group of this id; GROUP_ID_NOT_FOUND."""
    group = groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    detail = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a share group."
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, detail)


def _stay(
    context: ShareContext, turn: Turn, event: GroupRequest, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    joins = request.member_epoch == 0
    group = _find_or_make_group(context, request.group_id, joins)
    _check_room(group, request.member_id, context.settings.max_size)
    member = group.members.get(request.member_id)
    if member is None:
        member = ShareGroupMember(request.member_id) if joins else group.member(request.member_id)
    _check_epoch(member, request.member_epoch)
    updated = replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        topic_names=(
            member.topic_names
            if request.subscribed_topic_names is None
            else frozenset(request.subscribed_topic_names)
        ),
        client_id=event.client_id,
        client_host=event.client_host,
    )
    records: list[CoordinatorRecord] = []
    if updated != member:
        records.append(new_records.member_metadata(group.group_id, updated))
    subscribed = _Subscribed(context, turn.now_ms, group, member, updated, records)
    moved = _move_on(context, subscribed, turn.now_ms, records)
    names = subscribed.names.keys()
    wanted = topics_to_initialize(
        group.state_metadata,
        names,
        context.topics,
        turn.now_ms,
        context.settings.initialize_retry_interval_ms,
    )
    if wanted:
        records.append(
            new_records.state_metadata(group.group_id, with_initializing(group.state_metadata, wanted))
        )
    turn.append(records)
    if wanted:
        partitions = {topic_id: topic.partitions for topic_id, topic in wanted.items()}
        turn.effects.append(InitializeShareState(group.group_id, subscribed.group_epoch, partitions))
    values = context.settings.of_group(group.group_id)
    turn.set_timer(TimerKey(SESSION, group.group_id, member.member_id), values.session_timeout_ms)
    response = ShareGroupHeartbeatResponse(
        member_id=moved.member_id,
        member_epoch=moved.member_epoch,
        heartbeat_interval_ms=values.heartbeat_interval_ms,
    )
    if joins or request.subscribed_topic_names is not None or moved.assigned != member.assigned:
        response.assignment = _assignment(moved.assigned)
    return response


def _find_or_make_group(context: ShareContext, group_id: str, joins: bool) -> ShareGroup:
    if group_id not in context.groups:
        if joins:
            return ShareGroup(group_id)
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    return find_group(context.groups, group_id)


def _check_room(group: ShareGroup, member_id: str, max_size: int) -> None:
    if len(group.members) >= max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {max_size} members.",
        )


def _check_epoch(member: ShareGroupMember, epoch: int) -> None:
    """FENCED_MEMBER_EPOCH unless the epoch is the member's; 0 joins again, and the one before is good too: the last
    answer may have been lost."""
    if epoch in (0, member.member_epoch, member.previous_member_epoch) and epoch >= 0:
        return
    relation = "greater" if epoch > member.member_epoch else "smaller"
    known = f"the one known by the group coordinator ({member.member_epoch})"
    if epoch < member.member_epoch:
        known += f", and it does not match the previous member epoch ({member.previous_member_epoch})"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a {relation} member epoch ({epoch}) than {known}. "
        "The member must abandon all its partitions and rejoin.",
    )


class _Subscribed:
    """The group after the member's subscription was taken in: its epoch, and what is subscribed to."""

    def __init__(
        self,
        context: ShareContext,
        now_ms: int,
        group: ShareGroup,
        member: ShareGroupMember,
        updated: ShareGroupMember,
        records: list[CoordinatorRecord],
    ) -> None:
        self.group = group
        self.updated = updated
        self.members = {**group.members, updated.member_id: updated}
        self.names = Counter(group.name_counts)
        if member.member_id in group.members:
            self.names.subtract(member.topic_names)
        self.names.update(updated.topic_names)
        self.names = +self.names
        self.changed = updated.topic_names != member.topic_names
        if group.assignment_epoch >= group.group_epoch and has_unassigned(group):
            self.changed = True
        self.group_epoch = group.group_epoch
        if self.changed or group.needs_refresh(now_ms):
            topics_hash = metadata_hash(self.names, context.topics)
            if topics_hash != group.metadata_hash:
                self.changed = True
            if self.changed:
                self.group_epoch += 1
                records.append(new_records.group_epoch(group.group_id, self.group_epoch, topics_hash))
            group.refresh_deadline = RefreshDeadline(now_ms + _REFRESH_INTERVAL_MS, self.group_epoch)


def _move_on(
    context: ShareContext, subscribed: _Subscribed, now_ms: int, records: list[CoordinatorRecord]
) -> ShareGroupMember:
    """Assign anew if the group's epoch asks for it, and take the member to its target in one step."""
    group, member = subscribed.group, subscribed.updated
    epoch, target = group.assignment_epoch, group.target.get(member.member_id, NO_PARTITIONS)
    interval_ms = context.settings.of_group(group.group_id).assignment_interval_ms
    if epoch < subscribed.group_epoch and may_assign_again(
        group.assignment_timestamp_ms, interval_ms, now_ms
    ):
        epoch = subscribed.group_epoch
        assigned = _assign(context, subscribed)
        for member_id in subscribed.members:
            partitions = assigned.get(member_id, NO_PARTITIONS)
            if group.target.get(member_id) != partitions:
                records.append(new_records.target_of_member(group.group_id, member_id, partitions))
        records.append(new_records.target_epoch(group.group_id, epoch, now_ms))
        target = assigned.get(member.member_id, NO_PARTITIONS)
    if not subscribed.changed and member.member_epoch == epoch:
        return member
    topic_ids = topic_ids_of(member.topic_names, context.topics)
    moved = replace(
        member, assigned={topic_id: each for topic_id, each in target.items() if topic_id in topic_ids}
    )
    if moved.member_epoch != epoch:
        moved = replace(moved, member_epoch=epoch, previous_member_epoch=member.member_epoch)
    if moved != member:
        records.append(new_records.current_assignment(group.group_id, moved))
    return moved


def _assign(context: ShareContext, subscribed: _Subscribed) -> dict[str, Partitions]:
    group, members = subscribed.group, subscribed.members
    specs = {
        member_id: MemberSpec(
            topic_ids_of(member.topic_names, context.topics), group.target.get(member_id, NO_PARTITIONS)
        )
        for member_id, member in members.items()
    }
    counts = {}
    for name in subscribed.names:
        topic = context.topics.by_name(name)
        if topic is not None:
            counts[topic.topic_id] = topic.partition_count
    homogeneous = all(count == len(members) for count in subscribed.names.values())
    assignable = group.state_metadata.initialized_partitions
    return assign_simple(GroupSpec(specs, counts, homogeneous), assignable)


def _leave(
    context: ShareContext, turn: Turn, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    group = find_group(context.groups, request.group_id)
    remove_member(context, turn, group, group.member(request.member_id))
    return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def remove_member(context: ShareContext, turn: Turn, group: ShareGroup, member: ShareGroupMember) -> None:
    """Remove a member and begin a new epoch; the next heartbeat of those that stay assigns what it had."""
    names = Counter(group.name_counts)
    names.subtract(member.topic_names)
    topics_hash = metadata_hash(+names, context.topics)
    turn.append(
        [
            *new_records.member_tombstones(group.group_id, member.member_id),
            new_records.group_epoch(group.group_id, group.group_epoch + 1, topics_hash),
        ]
    )
    turn.cancel_timer(TimerKey(SESSION, group.group_id, member.member_id))
    is_last = len(group.members) == 1
    turn.effects.append(ShareMemberGone(group.group_id, member.member_id, group_is_empty=is_last))


def _assignment(assigned: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id]))
            for topic_id in sorted(assigned)
        ]
    )
