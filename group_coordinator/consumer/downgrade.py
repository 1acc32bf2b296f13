"""A consumer group becomes a classic one when the last member that speaks the new protocol has gone.

The records remove the consumer group and make the classic group, all in one batch. Replay of its record makes the
classic group as after a restart: stable, with what each member had. Then its members rebalance in the old way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ottla.group_coordinator.consumer import new_records
from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    version_of,
    write_assignment,
)
from ottla.group_coordinator.consumer.context import Changes, Context
from ottla.group_coordinator.consumer.member import ConsumerGroupMember
from ottla.group_coordinator.consumer.settings import DOWNGRADING
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.effects import SetTimer, TimerKey
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.records.classic_group import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from ottla.wire.errors import MalformedMessage

CLASSIC_SESSION: Final = "classic.session"
CLASSIC_REBALANCE: Final = "classic.rebalance"
"""Asks the classic family to begin a rebalance of a group that has just become one of its own."""


def downgrade_after_leaving(
    context: Context, group: ConsumerGroup, leaving: Sequence[ConsumerGroupMember], changes: Changes
) -> bool:
    """Turn the group into a classic one, if none but members of the classic protocol stay; did that happen?"""
    gone = {member.member_id for member in leaving}
    staying = [member for member in group.members.values() if member.member_id not in gone]
    if not staying or not _may_downgrade(context, staying):
        return False
    assignments = {member.member_id: group.target_of(member.member_id) for member in staying}
    try:
        record = _classic_record(context, group, staying, assignments, changes.now_ms)
    except MalformedMessage:
        return False  # a member's subscription cannot be read: its assignment could not be written for it
    changes.add(new_records.group_tombstones(group))
    changes.add([record])
    _start_timers(group, staying, changes)
    changes.after.append(SetTimer(TimerKey(CLASSIC_REBALANCE, group.group_id), changes.now_ms))
    return True


def downgrade_after_replacing(
    context: Context,
    group: ConsumerGroup,
    before: ConsumerGroupMember,
    joining: ConsumerGroupMember,
    rebalances: bool,
    changes: Changes,
) -> None:
    """Turn the group into a classic one, now that `joining` took the place of its last member of the new protocol."""
    staying = [member for member in group.members.values() if member.member_id != before.member_id]
    assignments = {member.member_id: group.target_of(member.member_id) for member in staying}
    assignments[joining.member_id] = group.target_of(before.member_id)
    record = _classic_record(context, group, [*staying, joining], assignments, changes.now_ms)
    changes.cancel_timers(group.group_id, before.member_id)
    changes.add(new_records.group_tombstones(group, {before.member_id: joining.member_id}))
    changes.add([record])
    _start_timers(group, [*staying, joining], changes)
    if rebalances:
        changes.after.append(SetTimer(TimerKey(CLASSIC_REBALANCE, group.group_id), changes.now_ms))


def may_downgrade_by_replacing(context: Context, group: ConsumerGroup, before: ConsumerGroupMember) -> bool:
    """Would the group be classic if `before` spoke the classic protocol?"""
    others = [member for member in group.members.values() if member.member_id != before.member_id]
    return (
        not before.uses_classic_protocol
        and all(member.uses_classic_protocol for member in others)
        and context.settings.migration_policy in DOWNGRADING
        and len(group.members) <= context.settings.classic_max_size
    )


def _may_downgrade(context: Context, staying: Sequence[ConsumerGroupMember]) -> bool:
    return (
        all(member.uses_classic_protocol for member in staying)
        and context.settings.migration_policy in DOWNGRADING
        and len(staying) <= context.settings.classic_max_size
    )


def _start_timers(group: ConsumerGroup, members: Sequence[ConsumerGroupMember], changes: Changes) -> None:
    for member in members:
        changes.cancel_timers(group.group_id, member.member_id)
        if member.classic is not None:
            changes.set_timer(
                CLASSIC_SESSION, group.group_id, member.member_id, member.classic.session_timeout_ms
            )


def _classic_record(
    context: Context,
    group: ConsumerGroup,
    members: Sequence[ConsumerGroupMember],
    assignments: dict[str, Partitions],
    now_ms: int,
) -> CoordinatorRecord:
    protocol = _select_protocol(members)
    described = []
    for member in members:
        assert member.classic is not None
        subscription = dict(member.classic.protocols).get(protocol, b"")
        described.append(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.classic.session_timeout_ms,
                subscription=subscription,
                assignment=write_assignment(
                    assignments[member.member_id], context.topics, version_of(subscription)
                ),
            )
        )
    return CoordinatorRecord(
        GroupMetadataKey(group=group.group_id),
        GroupMetadataValue(
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            generation=group.group_epoch,
            protocol=protocol,
            leader=members[0].member_id,
            current_state_timestamp=now_ms,
            members=described,
        ),
    )


def _select_protocol(members: Sequence[ConsumerGroupMember]) -> str:
    """What all support and most like best, as in a classic group."""
    preferences = [
        [name for name, _ in member.classic.protocols] for member in members if member.classic is not None
    ]
    common = set(preferences[0]).intersection(*preferences[1:])
    votes = Counter(next((name for name in names if name in common), "") for names in preferences)
    return max(votes, key=votes.__getitem__)
