"""One step of a member towards its target: give up what is no longer its own, then take what is free.

A member that has to give something up stays in its epoch until its heartbeat shows that it did; only then do others get
those partitions. So no partition has two owners, and members that lose nothing never stop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.member import NOTHING, ConsumerGroupMember, Held, MemberState
from ottla.wire.dataclass import dataclass, replace
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import Uuid

STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState


@dataclass(frozen=True, slots=True)
class Situation:
    """What a member is held against."""

    target_epoch: int
    target: Partitions
    subscribed_topic_ids: frozenset[Uuid]
    subscription_changed: bool
    """With this very heartbeat; what it no longer subscribes to is revoked without waiting for a new target."""
    owned: Partitions | None
    """What the member says it owns; None when it does not say."""
    holders: Callable[[Uuid], Mapping[int, int]]
    """The epochs of whoever holds partitions of a topic, by partition."""

    def owns_any(self, held: Held) -> bool:
        """May the member still work on any of these?"""
        if self.owned is None:
            return bool(held)
        return any(
            not partitions.isdisjoint(held.get(topic_id, ())) for topic_id, partitions in self.owned.items()
        )


def reconcile(member: ConsumerGroupMember, situation: Situation) -> ConsumerGroupMember:
    """The member after one step; the same member when it has to wait or has arrived."""
    return _STEPS[member.state](member, situation)


def _from_stable(member: ConsumerGroupMember, situation: Situation) -> ConsumerGroupMember:
    if member.member_epoch != situation.target_epoch:
        return _towards_target(member, situation)
    return _without_unsubscribed(member, situation) if situation.subscription_changed else member


def _from_unrevoked(member: ConsumerGroupMember, situation: Situation) -> ConsumerGroupMember:
    if situation.owned is not None and not situation.owns_any(member.pending_revocation):
        return _towards_target(member, situation)
    return _without_unsubscribed(member, situation) if situation.subscription_changed else member


def _from_unknown(member: ConsumerGroupMember, situation: Situation) -> ConsumerGroupMember:
    if situation.owned is None or situation.owned:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. "
            "The member must abandon all its partitions and rejoin.",
        )
    return _towards_target(member, situation)


def _towards_target(member: ConsumerGroupMember, situation: Situation) -> ConsumerGroupMember:
    """Revoke what is not in the target; with nothing to revoke, take what is free and enter the target's epoch."""
    keeps: dict[Uuid, Mapping[int, int]] = {}
    revokes: dict[Uuid, Mapping[int, int]] = {}
    takes: dict[Uuid, list[int]] = {}
    waits = False
    for topic_id in {**situation.target, **member.assigned}:
        target: frozenset[int] = frozenset()
        if topic_id in situation.subscribed_topic_ids:
            target = situation.target.get(topic_id, target)
        missing = target
        held = member.assigned.get(topic_id)
        if held:
            kept = {partition: epoch for partition, epoch in held.items() if partition in target}
            if kept:
                keeps[topic_id] = kept
                missing = target - kept.keys()
            if len(kept) < len(held):
                revokes[topic_id] = {
                    partition: epoch for partition, epoch in held.items() if partition not in target
                }
        holders = situation.holders(topic_id)
        if holders and missing:
            # Nobody else has what this member has just given up.
            own = member.pending_revocation.get(topic_id, {})
            free = [partition for partition in missing if partition in own or partition not in holders]
        else:
            free = list(missing)
        waits = waits or len(free) < len(missing)
        if free:
            takes[topic_id] = free

    if revokes and situation.owns_any(revokes):
        return replace(
            member,
            state=UNREVOKED,
            previous_member_epoch=member.member_epoch,
            assigned=keeps,
            pending_revocation=revokes,
        )
    for topic_id, partitions in takes.items():
        taken = dict.fromkeys(partitions, situation.target_epoch)
        keeps[topic_id] = {**keeps.get(topic_id, {}), **taken}
    return replace(
        member,
        state=UNRELEASED if waits else STABLE,
        member_epoch=situation.target_epoch,
        previous_member_epoch=member.member_epoch,
        assigned=keeps,
        pending_revocation=NOTHING,
    )


def _without_unsubscribed(member: ConsumerGroupMember, situation: Situation) -> ConsumerGroupMember:
    """Revoke the topics that the member no longer subscribes to, in the epoch it is in."""
    dropped = {
        topic_id: held
        for topic_id, held in member.assigned.items()
        if topic_id not in situation.subscribed_topic_ids
    }
    if not dropped:
        return member
    keeps = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in dropped}
    revokes = {
        topic_id: {**member.pending_revocation.get(topic_id, {}), **dropped.get(topic_id, {})}
        for topic_id in {**member.pending_revocation, **dropped}
    }
    if situation.owns_any(revokes):
        return replace(
            member,
            state=UNREVOKED,
            previous_member_epoch=member.member_epoch,
            assigned=keeps,
            pending_revocation=revokes,
        )
    return replace(member, previous_member_epoch=member.member_epoch, assigned=keeps)


_STEPS: Final[Mapping[MemberState, Callable[[ConsumerGroupMember, Situation], ConsumerGroupMember]]] = {
    STABLE: _from_stable,
    UNREVOKED: _from_unrevoked,
    UNRELEASED: _towards_target,
    UNKNOWN: _from_unknown,
}
"""What each state does next:

| state | step | then |
|---|---|---|
| STABLE | a new target epoch: towards the target; a changed subscription: revoke what is dropped | any |
| UNREVOKED_PARTITIONS | once the member owns none of what it shall give up: towards the target | any |
| UNRELEASED_PARTITIONS | towards the target, as far as others have let go | any |
| UNKNOWN | fenced unless the member owns nothing; then towards the target | any |
"""
