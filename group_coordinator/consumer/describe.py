"""ConsumerGroupDescribe: a group as admins see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from ottla.group_coordinator.consumer.member import ConsumerGroupMember
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.topics import Topic, Topics
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions
from ottla.wire.uuids import Uuid

TopicById = Callable[[Uuid], Topic | None]

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


def describe_group(group: ConsumerGroup, default_assignor: str, topics: Topics) -> DescribedGroup:
    """Its state, epochs and members."""
    by_id = cache(topics.by_id)
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[_member(group, member, by_id) for member in group.members.values()],
    )


def unknown_group(group_id: str, exists: bool) -> DescribedGroup:
    """What is said of a group that is not there, or is of another kind."""
    detail = f"Group {group_id} is not a consumer group." if exists else f"Group {group_id} not found."
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=detail)


def _member(group: ConsumerGroup, member: ConsumerGroupMember, by_id: TopicById) -> Member:
    """What it has includes what it has still to give up: until then nobody else works on that."""
    held: Mapping[Uuid, Iterable[int]] = member.assigned
    if member.pending_revocation:
        held = {
            topic_id: {**member.assigned.get(topic_id, {}), **member.pending_revocation.get(topic_id, {})}
            for topic_id in {**member.assigned, **member.pending_revocation}
        }
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(held, by_id),
        target_assignment=_assignment(group.target_of(member.member_id), by_id),
        member_type=_CLASSIC_MEMBER if member.uses_classic_protocol else _CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[Uuid, Iterable[int]], by_id: TopicById) -> Assignment:
    known = ((by_id(topic_id), partitions[topic_id]) for topic_id in sorted(partitions))
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=sorted(numbers))
            for topic, numbers in known
            if topic is not None
        ]
    )
