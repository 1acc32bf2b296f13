"""Members that are removed: they left, their session timed out, or they did not give partitions up in time."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.group_coordinator.consumer import new_records
from ottla.group_coordinator.consumer.context import REBALANCE, Changes, Context
from ottla.group_coordinator.consumer.downgrade import downgrade_after_leaving
from ottla.group_coordinator.consumer.member import LEAVE_STATIC_EPOCH, ConsumerGroupMember, MemberState
from ottla.group_coordinator.consumer.metadata_hash import metadata_hash
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.consumer.subscriptions import subscriptions_after
from ottla.group_coordinator.effects import TimerKey


def remove_members(
    context: Context, group: ConsumerGroup, members: Sequence[ConsumerGroupMember], changes: Changes
) -> None:
    """Remove members and begin a new epoch; the next heartbeat of those that stay assigns what they had.

    When only members of the classic protocol stay, the group becomes a classic one.
    """
    if not members:
        return
    for member in members:
        changes.cancel_timers(group.group_id, member.member_id)
    if downgrade_after_leaving(context, group, members, changes):
        return
    for member in members:
        changes.add(new_records.member_tombstones(group.group_id, member.member_id))
    subscriptions = subscriptions_after(group, members)
    for expression in group.resolved_regexes:
        if expression not in subscriptions.regex_counts:
            changes.add([new_records.regex_tombstone(group.group_id, expression)])
    topics_hash = metadata_hash(subscriptions.topic_names, context.topics)
    changes.add([new_records.group_epoch(group.group_id, group.group_epoch + 1, topics_hash)])


def fence_on_timer(context: Context, key: TimerKey, changes: Changes) -> None:
    """Remove the member whose timer fired, if it is still there and still due."""
    group = context.group(key.group_id)
    member = None if group is None else group.members.get(key.member_id)
    if group is None or member is None:
        return
    if key.kind == REBALANCE and (
        member.state is not MemberState.UNREVOKED_PARTITIONS
        # A static member that is away has given up everything; its session decides how long it may be so.
        or member.member_epoch == LEAVE_STATIC_EPOCH
    ):
        return
    remove_members(context, group, [member], changes)
