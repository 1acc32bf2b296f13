"""Classic groups on their way to become consumer groups, and those that were consumer groups a moment ago."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.group_coordinator.classic.group import ClassicGroup
from ottla.group_coordinator.classic.rebalance import (
    JOIN_TIMER,
    SYNC_TIMER,
    answer_join,
    answer_syncs,
    prepare_rebalance,
    session_timer,
)
from ottla.group_coordinator.consumer.upgrade import ClassicGroupMember, ClassicGroupView
from ottla.group_coordinator.effects import TimerKey
from ottla.group_coordinator.group import Group
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.turn import Turn
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.join_group import JoinGroupResponse

REBALANCE_TIMER: Final = "classic.rebalance"


class ConvertibleClassicGroups:
    """The classic groups of a shard, for the family of consumer groups."""

    def __init__(self, turn: Turn, groups: Mapping[str, Group]) -> None:
        self._turn = turn
        self._groups = groups

    def view(self, group_id: str) -> ClassicGroupView | None:
        """What a consumer group needs of the classic group of this id."""
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return None
        return ClassicGroupView(
            group_id,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            [
                ClassicGroupMember(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    tuple((protocol.name, bytes(protocol.metadata)) for protocol in member.protocols),
                    bytes(member.assignment),
                )
                for member in group.members.values()
            ],
        )

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """The records that remove the group."""
        return self._groups[group_id].tombstones()

    def release(self, group_id: str) -> None:
        """Who waits in the group has to join again, and none of its timers fires."""
        group = self._groups[group_id]
        assert isinstance(group, ClassicGroup)
        error = ErrorCode.REBALANCE_IN_PROGRESS
        for member in group.members.values():
            answer_join(
                self._turn, group, member, JoinGroupResponse(error_code=error, member_id=member.member_id)
            )
        answer_syncs(self._turn, group, error)
        for member_id in {*group.members, *group.pending_join}:
            self._turn.cancel_timer(session_timer(group, member_id))
        for kind in (JOIN_TIMER, SYNC_TIMER):
            self._turn.cancel_timer(TimerKey(kind, group_id))


def rebalance_after_downgrade(turn: Turn, group: ClassicGroup) -> None:
    """A group that was a consumer group lets its members agree on an assignment of their own."""
    if group.members and group.can_rebalance:
        prepare_rebalance(turn, group)
