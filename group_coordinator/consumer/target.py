"""The target assignment of a group: which member shall have which partitions in the group's newest epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.group_coordinator.consumer import new_records
from ottla.group_coordinator.consumer.assignors import ASSIGNORS
from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, MemberSpec, Partitions
from ottla.group_coordinator.consumer.member import ConsumerGroupMember
from ottla.group_coordinator.consumer.state import EMPTY_TARGET, ConsumerGroup
from ottla.group_coordinator.consumer.subscriptions import Subscriptions, topics_of
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.topics import Topics
from ottla.wire.uuids import Uuid


class Target(NamedTuple):
    """A target as one member sees it."""

    epoch: int
    partitions: Partitions


def may_assign_again(last_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Is the last assignment long enough ago (KIP-1263)? An interval of 0 helps when the clock was set back."""
    return last_ms == 0 or interval_ms == 0 or now_ms >= last_ms + interval_ms


def compute_target(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerGroupMember],
    subscriptions: Subscriptions,
    assignor: str,
    topics: Topics,
) -> dict[str, Partitions]:
    """The assignment of these members; one that takes the place of a static member inherits its last target."""
    counts: dict[Uuid, int] = {}
    ids: dict[str, Uuid | None] = {}
    for name in subscriptions.topic_names:
        topic = topics.by_name(name)
        ids[name] = None if topic is None else topic.topic_id
        if topic is not None:
            counts[topic.topic_id] = topic.partition_count
    subscribed: dict[frozenset[str], frozenset[Uuid]] = {}
    specs: dict[str, MemberSpec] = {}
    targets = group.target
    for member_id, member in members.items():
        names = topics_of(member, subscriptions.resolved) if member.topic_regex else member.topic_names
        topic_ids = subscribed.get(names)
        if topic_ids is None:
            found = (ids.get(name) for name in names)
            topic_ids = subscribed[names] = frozenset(each for each in found if each is not None)
        instance_id = member.instance_id
        if instance_id is None:
            last = targets.get(member_id, EMPTY_TARGET)
        else:
            last = group.target_of(member_id, instance_id)
        specs[member_id] = MemberSpec(topic_ids, last, instance_id, member.rack_id)
    homogeneous = subscriptions.is_homogeneous(len(members))
    return ASSIGNORS[assignor](GroupSpec(specs, counts, homogeneous))


def target_records(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerGroupMember],
    assigned: Mapping[str, Partitions],
    target: Target,
    now_ms: int,
) -> list[CoordinatorRecord]:
    """What changes with a new target, and its epoch last: a target counts when it is complete."""
    records = []
    for member_id in members:
        partitions = assigned.get(member_id, EMPTY_TARGET)
        before = group.target.get(member_id)
        if before is not partitions and before != partitions:
            records.append(new_records.target_of_member(group.group_id, member_id, partitions))
    records.append(new_records.target_epoch(group.group_id, target.epoch, now_ms))
    return records
