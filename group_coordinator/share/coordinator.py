"""The front door of this family: events of share groups other than heartbeats, and what admins ask."""

from __future__ import annotations

from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.state import REFRESH_NOW
from ottla.group_coordinator.effects import ShareStateInitialized, ShareStateRemoved, TimerKey, TopicsChanged
from ottla.group_coordinator.share import new_records
from ottla.group_coordinator.share.assignor import SIMPLE
from ottla.group_coordinator.share.heartbeat import SESSION, ShareContext, remove_member
from ottla.group_coordinator.share.state import ShareGroup, ShareGroupMember, StateMetadata
from ottla.group_coordinator.share.state_changes import with_initialized, without_topics
from ottla.group_coordinator.topics import Topics
from ottla.group_coordinator.turn import Turn
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

TIMER_KINDS = (SESSION,)


def timer_fired(context: ShareContext, turn: Turn, key: TimerKey) -> None:
    """A member's session is over."""
    group = context.groups.get(key.group_id)
    if isinstance(group, ShareGroup) and key.member_id in group.members:
        remove_member(context, turn, group, group.members[key.member_id])


def start_timers(context: ShareContext, turn: Turn) -> None:
    """After replay: everybody has a whole session to show up again."""
    for group in context.groups.values():
        if isinstance(group, ShareGroup):
            timeout_ms = context.settings.of_group(group.group_id).session_timeout_ms
            for member_id in group.members:
                turn.set_timer(TimerKey(SESSION, group.group_id, member_id), timeout_ms)


def topics_changed(context: ShareContext, turn: Turn, event: TopicsChanged) -> None:
    """Groups look at their topics again with their next heartbeat, and forget the state of those that are gone."""
    changed = event.created_or_grown | event.deleted
    for group in context.groups.values():
        if not isinstance(group, ShareGroup):
            continue
        if any(group.is_subscribed_to(topic) for topic in changed):
            group.refresh_deadline = REFRESH_NOW
        if event.deleted:
            metadata = group.state_metadata
            known = {*metadata.initializing, *metadata.initialized, *metadata.deleting}
            gone = [topic_id for topic_id in known if context.topics.by_id(topic_id) is None]
            if gone:
                _put(turn, group, without_topics(metadata, gone))


def state_initialized(context: ShareContext, turn: Turn, event: ShareStateInitialized) -> None:
    """Share partitions got their state; they are assigned with the next heartbeat."""
    group = context.groups.get(event.group_id)
    if group is None and event.creates_group:
        group = ShareGroup(event.group_id)
    if isinstance(group, ShareGroup):
        _put(
            turn, group, with_initialized(group.state_metadata, event.partitions, context.topics, turn.now_ms)
        )


def state_removed(context: ShareContext, turn: Turn, event: ShareStateRemoved) -> None:
    """An admin had the state of topics deleted."""
    group = context.groups.get(event.group_id)
    if isinstance(group, ShareGroup):
        _put(turn, group, without_topics(group.state_metadata, event.topic_ids))


def _put(turn: Turn, group: ShareGroup, metadata: StateMetadata) -> None:
    if metadata != group.state_metadata:
        turn.append([new_records.state_metadata(group.group_id, metadata)])


def describe_group(group: ShareGroup, topics: Topics) -> DescribedGroup:
    """Its state, epochs and members."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=SIMPLE,
        members=[_member(member, topics) for member in group.members.values()],
    )


def unknown_group(group_id: str, exists: bool) -> DescribedGroup:
    """What is said of a group that is not there, or is of another kind."""
    detail = f"Group {group_id} is not a share group." if exists else f"Group {group_id} not found."
    return DescribedGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=detail,
    )


def _member(member: ShareGroupMember, topics: Topics) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        assignment=Assignment(topic_partitions=_topic_partitions(member.assigned, topics)),
    )


def _topic_partitions(partitions: Partitions, topics: Topics) -> list[TopicPartitions]:
    known = ((topics.by_id(topic_id), numbers) for topic_id, numbers in sorted(partitions.items()))
    return [
        TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=sorted(numbers))
        for topic, numbers in known
        if topic is not None
    ]
