"""A classic group becomes a consumer group when a member of the new protocol joins it.

Its members stay: each keeps what it had as target and as assignment, in an epoch that is the generation. They go on to
speak the classic protocol and are told to join again, so that partitions can move to the newcomer step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ottla.group_coordinator.consumer import new_records
from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    partitions_by_id,
    read_assignment,
    read_subscription,
)
from ottla.group_coordinator.consumer.context import SESSION, Changes, Context
from ottla.group_coordinator.consumer.member import ClassicMember, ConsumerGroupMember
from ottla.group_coordinator.consumer.metadata_hash import metadata_hash
from ottla.group_coordinator.consumer.replay import Groups, apply_consumer_record
from ottla.group_coordinator.consumer.settings import UPGRADING
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage


class ClassicGroupMember(NamedTuple):
    """A member of a classic group, as much as a consumer group needs of it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes


class ClassicGroupView(NamedTuple):
    """A classic group, as much as a consumer group needs of it."""

    group_id: str
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    members: Sequence[ClassicGroupMember]

    def subscription_of(self, member: ClassicGroupMember) -> bytes:
        """What a member sent with the protocol of the group, or with its first one before there is any."""
        protocols = dict(member.protocols)
        return protocols.get(self.protocol_name or "", next(iter(protocols.values()), b""))


class ClassicGroups(Protocol):
    """The other family, as this one sees it."""

    def view(self, group_id: str) -> ClassicGroupView | None:
        """The classic group of this id, if there is one."""
        ...

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """The records that remove it."""
        ...

    def release(self, group_id: str) -> None:
        """Tell those who wait in it to join again, and stop its timers: it is being removed."""
        ...


def find_or_make_group(
    context: Context, classic: ClassicGroups, group_id: str, joins: bool, changes: Changes
) -> ConsumerGroup:
    """The consumer group of this id. A joining member makes one: of nothing, or of a classic group."""
    group = context.group(group_id)
    if group is not None:
        return group
    view = classic.view(group_id)
    if not joins:
        reason = "not found" if view is None else "is not a consumer group"
        name = f"Consumer group {group_id}" if view is None else f"Group {group_id}"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{name} {reason}.")
    if view is None:
        return ConsumerGroup(group_id)
    if view.members:
        _check_upgrade(context, view)
        members = _convert_members(context, view)
    else:
        members = []
    changes.add(classic.tombstones(group_id))
    if not members:
        return ConsumerGroup(group_id)
    return _convert(context, view, members, changes)


def _check_upgrade(context: Context, view: ClassicGroupView) -> None:
    if context.settings.migration_policy not in UPGRADING:
        raise _cannot_upgrade(view, "online upgrade is disabled")
    if view.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _cannot_upgrade(view, "the group does not use the consumer embedded protocol")
    if len(view.members) > context.settings.max_size:
        raise _cannot_upgrade(view, "the group size exceeds the consumer group maximum size")


def _convert_members(
    context: Context, view: ClassicGroupView
) -> list[tuple[ConsumerGroupMember, Partitions]]:
    try:
        return [_convert_member(context, view, member) for member in view.members]
    except MalformedMessage as error:
        raise _cannot_upgrade(view, "the embedded consumer protocol is malformed") from error


def _convert_member(
    context: Context, view: ClassicGroupView, member: ClassicGroupMember
) -> tuple[ConsumerGroupMember, Partitions]:
    assigned: Partitions = {}
    if member.assignment:
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot upgrade classic group {view.group_id} to consumer group because an unsupported custom "
                "assignor is in use. Please refer to the documentation or switch to a default assignor before "
                "re-attempting the upgrade.",
            )
        assigned = partitions_by_id(assignment.assigned_partitions, context.topics)
    subscription = read_subscription(view.subscription_of(member))
    converted = ConsumerGroupMember(
        member.member_id,
        member_epoch=view.generation_id,
        previous_member_epoch=view.generation_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        assigned={
            topic: dict.fromkeys(partitions, view.generation_id) for topic, partitions in assigned.items()
        },
        classic=ClassicMember(member.session_timeout_ms, member.protocols),
    )
    return converted, assigned


def _convert(
    context: Context,
    view: ClassicGroupView,
    members: list[tuple[ConsumerGroupMember, Partitions]],
    changes: Changes,
) -> ConsumerGroup:
    """The records of the new group; the group itself is what replay makes of them."""
    group_id, epoch = view.group_id, view.generation_id
    names = frozenset().union(*(member.topic_names for member, _ in members))
    records = [
        *(new_records.member_metadata(group_id, member) for member, _ in members),
        new_records.group_epoch(group_id, epoch, metadata_hash(names, context.topics)),
        *(new_records.target_of_member(group_id, member.member_id, assigned) for member, assigned in members),
        new_records.target_epoch(group_id, epoch, 0),
        *(new_records.current_assignment(group_id, member) for member, _ in members),
    ]
    made: Groups = {}
    for record in records:
        apply_consumer_record(made, record)
    changes.add(records)
    for member, _ in members:
        assert member.classic is not None
        changes.set_timer(SESSION, group_id, member.member_id, member.classic.session_timeout_ms)
    group = made[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def _cannot_upgrade(view: ClassicGroupView, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {view.group_id} to consumer group because {reason}.",
    )
