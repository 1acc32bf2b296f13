"""ConsumerGroupDescribe: a group as admins see it."""

from __future__ import annotations

from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.member import ConsumerGroupMember
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.topics import Topics
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


def describe_group(group: ConsumerGroup, default_assignor: str, topics: Topics) -> DescribedGroup:
    """Its state, epochs and members."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def unknown_group(group_id: str, exists: bool) -> DescribedGroup:
    """What is said of a group that is not there, or is of another kind."""
    detail = f"Group {group_id} is not a consumer group." if exists else f"Group {group_id} not found."
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=detail)


def _member(group: ConsumerGroup, member: ConsumerGroupMember, topics: Topics) -> Member:
    """What it has includes what it has still to give up: until then nobody else works on that."""
    held = {
        topic_id: frozenset(member.assigned.get(topic_id, ()))
        | frozenset(member.pending_revocation.get(topic_id, ()))
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
        assignment=_assignment(held, topics),
        target_assignment=_assignment(group.target_of(member.member_id), topics),
        member_type=_CLASSIC_MEMBER if member.uses_classic_protocol else _CONSUMER_MEMBER,
    )


def _assignment(partitions: Partitions, topics: Topics) -> Assignment:
    known = ((topics.by_id(topic_id), numbers) for topic_id, numbers in sorted(partitions.items()))
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=sorted(numbers))
            for topic, numbers in known
            if topic is not None
        ]
    )
