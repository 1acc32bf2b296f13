"""The middle of every heartbeat and join: write down what changed, assign anew if need be, move the member on.

Members of both protocols pass through here; what differs before and after is in `heartbeat` and `classic_members`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.group_coordinator.consumer import new_records
from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.context import REBALANCE, Changes, Context
from ottla.group_coordinator.consumer.member import ConsumerGroupMember, MemberState
from ottla.group_coordinator.consumer.metadata_hash import metadata_hash
from ottla.group_coordinator.consumer.reconcile import Situation, reconcile
from ottla.group_coordinator.consumer.regexes import compile_regex
from ottla.group_coordinator.consumer.state import ConsumerGroup, RefreshDeadline
from ottla.group_coordinator.consumer.subscriptions import (
    Subscriptions,
    current_subscriptions,
    subscriptions_after,
    topic_ids_of,
    topics_of,
)
from ottla.group_coordinator.consumer.target import Target, compute_target, may_assign_again, target_records

_REFRESH_INTERVAL_MS: Final = 0x7FFFFFFF  # as Kafka: topics are looked at when they change


class Subscribed(NamedTuple):
    """What the group and the member are after the subscription of the member was taken in."""

    group_epoch: int
    subscriptions: Subscriptions
    changed: bool
    """Did the member change what it subscribes to?"""


def take_in_subscription(
    context: Context,
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    changes: Changes,
) -> Subscribed:
    """Write the member down if it changed, resolve regular expressions, and begin a new epoch when topics differ."""
    group_id = group.group_id
    if updated is member and not group.regex_counts and not group.needs_refresh(changes.now_ms):
        return Subscribed(group.group_epoch, current_subscriptions(group), changed=False)
    if updated != member:
        changes.add([new_records.member_metadata(group_id, updated)])
    names_changed = updated.topic_names != member.topic_names
    regex_changed = (updated.topic_regex or "") != (member.topic_regex or "")
    if regex_changed and updated.topic_regex and updated.topic_regex not in group.regex_counts:
        compile_regex(updated.topic_regex)

    subscriptions = _with_resolved_regexes(context, group, member, updated, changes)
    bump = (
        names_changed
        or topics_of(member, group.resolved_regexes) != topics_of(updated, subscriptions.resolved)
        or any(
            expression in group.resolved_regexes
            and group.resolved_regexes[expression].topics != subscriptions.resolved[expression].topics
            for expression in subscriptions.regex_counts
        )
    )
    group_epoch = group.group_epoch
    if bump or group.needs_refresh(changes.now_ms):
        topics_hash = metadata_hash(subscriptions.topic_names, context.topics)
        if bump or topics_hash != group.metadata_hash:
            group_epoch += 1
            changes.add([new_records.group_epoch(group_id, group_epoch, topics_hash)])
        group.refresh_deadline = RefreshDeadline(changes.now_ms + _REFRESH_INTERVAL_MS, group_epoch)
        if group.has_partition_metadata_record:
            changes.add([new_records.partition_metadata_tombstone(group_id)])
    return Subscribed(group_epoch, subscriptions, names_changed or regex_changed)


def _with_resolved_regexes(
    context: Context,
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    changes: Changes,
) -> Subscriptions:
    replaced = [member] if member.member_id in group.members else _replaced_by(group, updated)
    if replaced and (member.topic_names, member.topic_regex) == (updated.topic_names, updated.topic_regex):
        subscriptions = current_subscriptions(group)
    else:
        subscriptions = subscriptions_after(group, replaced, updated)
    for expression in group.resolved_regexes:
        if expression not in subscriptions.regex_counts:
            changes.add([new_records.regex_tombstone(group.group_id, expression)])
    expressions = subscriptions.regex_counts
    interval_ms = context.settings.regex_refresh_interval_ms
    if not context.regexes.is_due(group, expressions, interval_ms, changes.now_ms):
        return subscriptions
    resolved = context.regexes.resolve(expressions, changes.now_ms)
    changes.add(new_records.regex(group.group_id, expression, each) for expression, each in resolved.items())
    return Subscriptions(
        subscriptions.name_counts, subscriptions.regex_counts, {**subscriptions.resolved, **resolved}
    )


def _replaced_by(group: ConsumerGroup, updated: ConsumerGroupMember) -> list[ConsumerGroupMember]:
    """The static member whose place this one takes, if any."""
    before = group.static_member(updated.instance_id)
    return [] if before is None else [before]


def find_target(
    context: Context,
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    updated: ConsumerGroupMember,
    subscribed: Subscribed,
    changes: Changes,
) -> Target:
    """The target as the member sees it; a new one when the group's epoch asks for it and the last is not too fresh."""
    interval_ms = context.settings.times_of(group.group_id).assignment_interval_ms
    if group.assignment_epoch >= subscribed.group_epoch or not may_assign_again(
        group.assignment_timestamp_ms, interval_ms, changes.now_ms
    ):
        return Target(group.assignment_epoch, group.target_of(updated.member_id, updated.instance_id))
    members = {**group.members, updated.member_id: updated}
    for before in _replaced_by(group, updated):
        if before.member_id != updated.member_id:
            del members[before.member_id]
    assignors = context.settings.assignors
    assignor = group.preferred_assignor(member, updated)
    if assignor not in assignors:
        assignor = assignors[0]  # none was asked for, or the config has changed since
    assigned = compute_target(group, members, subscribed.subscriptions, assignor, context.topics)
    target = Target(subscribed.group_epoch, assigned.get(updated.member_id, {}))
    changes.add(target_records(group, members, assigned, target, changes.now_ms))
    return target


def move_on(
    context: Context,
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    target: Target,
    subscribed: Subscribed,
    owned: Partitions | None,
    changes: Changes,
) -> ConsumerGroupMember:
    """One step of the member towards its target, with the timer that limits how long it may hold on."""
    if not subscribed.changed and member.is_reconciled_to(target.epoch):
        return member
    names = topics_of(member, subscribed.subscriptions.resolved)
    situation = Situation(
        target.epoch,
        target.partitions,
        topic_ids_of(names, context.topics),
        subscribed.changed,
        owned,
        group.holders,
    )
    moved = reconcile(member, situation)
    if moved != member:
        changes.add([new_records.current_assignment(group.group_id, moved)])
        if not moved.uses_classic_protocol:
            if moved.state is MemberState.UNREVOKED_PARTITIONS:
                changes.set_timer(REBALANCE, group.group_id, moved.member_id, moved.rebalance_timeout_ms)
            else:
                changes.cancel_timers(group.group_id, moved.member_id, (REBALANCE,))
    return moved
