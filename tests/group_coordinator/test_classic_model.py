"""Classic groups under any order of requests, pauses and restarts.

Members of one group join, sync, send heartbeats, commit, leave, vanish and come back; whoever leads deals the
four partitions out. Whatever happens: every waiter is answered exactly once, no partition has two owners in a
generation, generations do not go back, and the log alone gives the same groups and offsets again.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.group_coordinator.classic.group import ClassicGroup, GroupState
from ottla.group_coordinator.shard import GroupShard
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.group_coordinator.classic_client import Member, subscription
from tests.group_coordinator.driver import Driver

PARTITIONS = 4
RESET = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
PROTOCOLS = [
    {"range": subscription("t")},
    {"range": subscription("t"), "sticky": subscription("t", "u")},
    {"sticky": subscription("u"), "range": subscription("t")},
]


class ModelMember(Member):
    """A member with its requests under way."""

    def __init__(self, driver: Driver, instance_id: str | None, protocols: dict[str, bytes]) -> None:
        super().__init__(driver, instance_id=instance_id, protocols=protocols)
        self.waiting: tuple[str, int] | None = None
        self.next_step = "join"
        self.leads: list[str] | None = None

    @property
    def owner(self) -> str:
        return self.instance_id or self.member_id


class ClassicGroupMachine(RuleBasedStateMachine):
    @initialize(delay_ms=st.sampled_from([0, 3000]))
    def start(self, delay_ms: int) -> None:
        self.driver = Driver(
            group_initial_rebalance_delay_ms=str(delay_ms),
            # A group that is cleared away begins anew with its generations.
            offsets_retention_check_interval_ms=str(10**12),
        )
        self.members: list[ModelMember] = []
        self.generation = 0
        self.owners: dict[tuple[int, int], str] = {}
        self.led: dict[int, list[str] | None] = {}
        self.sent: set[int] = set()
        self.committed: dict[int, int] = {}

    def group(self) -> ClassicGroup | None:
        group = self.driver.shard.groups.get("g")
        return group if isinstance(group, ClassicGroup) else None

    def take_answers(self) -> None:
        """Let every member read what came for it."""
        for member in self.members:
            if member.waiting is not None and member.waiting[1] in self.driver.answers:
                kind, waiter = member.waiting
                member.waiting = None
                getattr(self, f"read_{kind}")(member, self.driver.answers[waiter])

    def read_join(self, member: ModelMember, answer: Any) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            member.member_id = answer.member_id
        elif answer.error_code == ErrorCode.NONE:
            assert answer.generation_id >= self.generation
            self.generation = answer.generation_id
            member.member_id, member.generation_id = answer.member_id, answer.generation_id
            member.next_step = "sync"
            leads = answer.leader == member.member_id and not answer.skip_assignment
            member.leads = [each.member_id for each in answer.members] if leads else None
            if leads:
                told = self.led.setdefault(answer.generation_id, member.leads)
                assert told == member.leads, "one generation with two memberships"
        else:
            self.read_error(member, answer.error_code)

    def read_sync(self, member: ModelMember, answer: Any) -> None:
        if answer.error_code != ErrorCode.NONE:
            self.read_error(member, answer.error_code)
            return
        member.next_step = "heartbeat"
        group = self.group()
        assert group is not None
        assert group.persisted is not None
        assert group.persisted.generation >= member.generation_id  # acknowledged is persisted
        for partition in answer.assignment:
            owner = self.owners.setdefault((member.generation_id, partition), member.owner)
            assert owner == member.owner, f"partition {partition} has two owners"

    def read_error(self, member: ModelMember, code: int) -> None:
        if code != ErrorCode.NONE:
            member.next_step = "join"
        if code in RESET:
            member.member_id, member.generation_id, member.leads = "", -1, None

    def send(self, member: ModelMember, kind: str, waiter: int) -> None:
        self.sent.add(waiter)
        member.waiting = kind, waiter
        self.take_answers()

    # What happens ------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.members) < 4)
    @rule(protocols=st.sampled_from(PROTOCOLS))
    def appear(self, protocols: dict[str, bytes]) -> None:
        self.members.append(ModelMember(self.driver, None, protocols))

    @precondition(lambda self: len(self.members) < 6)
    @rule(instance_id=st.sampled_from(["i", "j"]), protocols=st.sampled_from(PROTOCOLS))
    def appear_as_instance(self, instance_id: str, protocols: dict[str, bytes]) -> None:
        """Also when the instance is there already: the new one is its restart."""
        self.members = [member for member in self.members if member.instance_id != instance_id]
        self.members.append(ModelMember(self.driver, instance_id, protocols))

    @precondition(lambda self: self.members)
    @rule(data=st.data(), version=st.sampled_from([3, 5, 9]))
    def join(self, data: st.DataObject, version: int) -> None:
        """Out of turn, perhaps again while it already waits."""
        self.send_join(data.draw(st.sampled_from(self.members)), version)

    def send_join(self, member: ModelMember, version: int = 9) -> None:
        version = version if member.instance_id is None else max(version, 5)
        self.send(member, "join", member.send_join(version))

    @precondition(lambda self: any(member.generation_id >= 0 for member in self.members))
    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        """Out of turn."""
        self.send_sync(data.draw(st.sampled_from([each for each in self.members if each.generation_id >= 0])))

    def send_sync(self, member: ModelMember) -> None:
        assignments: dict[str, bytes] = {}
        for partition in range(PARTITIONS if member.leads else 0):
            assert member.leads is not None
            owner = member.leads[partition % len(member.leads)]
            assignments[owner] = assignments.get(owner, b"") + bytes([partition])
        self.send(member, "sync", member.sync(assignments))

    def beat(self, member: ModelMember) -> None:
        self.read_error(member, member.heartbeat())
        self.take_answers()

    def go_on(self, member: ModelMember) -> None:
        """Do what a client would do now."""
        if member.waiting is None:
            step = {"join": self.send_join, "sync": self.send_sync, "heartbeat": self.beat}[member.next_step]
            step(member)

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def one_goes_on(self, data: st.DataObject) -> None:
        self.go_on(data.draw(st.sampled_from(self.members)))

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def all_go_on(self, data: st.DataObject) -> None:
        for member in data.draw(st.permutations(self.members)):
            self.go_on(member)

    @precondition(lambda self: self.members)
    @rule(rounds=st.integers(4, 8))
    def come_to_rest(self, rounds: int) -> None:
        for _ in range(rounds):
            for member in self.members:
                self.go_on(member)
            self.driver.pass_ms(3000)
            self.take_answers()

    @precondition(lambda self: self.members)
    @rule(data=st.data(), offset=st.integers(0, 100))
    def commit(self, data: st.DataObject, offset: int) -> None:
        member = data.draw(st.sampled_from(self.members))
        partition = data.draw(st.integers(0, PARTITIONS - 1))
        topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(partition, offset)])
        request = OffsetCommitRequest(
            "g", member.generation_id, member.member_id, member.instance_id, -1, [topic]
        )
        code = self.driver.ask(request, 9).topics[0].partitions[0].error_code
        if code == ErrorCode.NONE:
            self.committed[partition] = offset
        self.take_answers()

    @precondition(lambda self: any(member.member_id for member in self.members))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from([each for each in self.members if each.member_id]))
        member.leave()
        self.take_answers()
        self.members.remove(member)

    @precondition(lambda self: any(member.waiting and member.member_id for member in self.members))
    @rule(data=st.data())
    def leave_while_waiting(self, data: st.DataObject) -> None:
        """Its answer is still due."""
        waiting = [each for each in self.members if each.waiting and each.member_id]
        member = data.draw(st.sampled_from(waiting))
        member.leave()
        self.take_answers()
        self.members.remove(member)

    @precondition(lambda self: len(self.members) > 1)
    @rule()
    def followers_sync_first(self) -> None:
        """All join, and everybody but the leader waits for its assignment."""
        for _ in range(3):
            for member in self.members:
                if member.waiting is None and member.next_step == "join":
                    self.send_join(member)
            self.driver.pass_ms(3000)
            self.take_answers()
        for member in self.members:
            if member.waiting is None and member.next_step == "sync" and not member.leads:
                self.send_sync(member)

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def vanish(self, data: st.DataObject) -> None:
        self.members.remove(data.draw(st.sampled_from(self.members)))

    @rule(duration_ms=st.sampled_from([0, 1, 3000, 9999, 20_000, 61_000, 301_000]))
    def time_passes(self, duration_ms: int) -> None:
        self.driver.pass_ms(duration_ms)
        self.take_answers()

    @rule()
    def restart(self) -> None:
        """Whoever waited sees the connection end; a generation that nobody had synced may be numbered again."""
        self.driver.restart()
        self.sent.clear()
        for member in self.members:
            member.waiting = None
        group = self.group()
        self.generation = 0 if group is None else group.generation_id
        self.led = {generation: led for generation, led in self.led.items() if generation <= self.generation}
        self.owners = {key: owner for key, owner in self.owners.items() if key[0] <= self.generation}

    # What always holds -------------------------------------------------------------------------------------

    @invariant()
    def log_gives_the_same(self) -> None:
        assert hard_state(self.driver.replayed()) == hard_state(self.driver.shard)

    @invariant()
    def what_is_settled_survives(self) -> None:
        """Between rebalances the log alone gives a group with the same generation, leader and assignments."""
        live, replayed = self.group(), self.driver.replayed().groups.get("g")
        if live is None or live.state not in (GroupState.STABLE, GroupState.EMPTY) or live.persisted is None:
            return
        assert isinstance(replayed, ClassicGroup)
        assert settled(replayed) == settled(live)

    @invariant()
    def offsets_are_what_was_acknowledged(self) -> None:
        offsets = self.driver.shard.offsets.of_group("g").get("t", {})
        assert {partition: value.offset for partition, value in offsets.items()} == self.committed

    @invariant()
    def parked_members_have_a_timer(self) -> None:
        """Nothing waits that nothing will end."""
        group = self.group()
        if group is None:
            return
        if group.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE):
            assert any(key.group_id == "g" for key in self.driver.timers)
        if not group.is_empty and group.members:
            assert group.leader_id in group.members

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            self.driver.pass_ms(3_600_000)
            assert self.sent <= self.driver.answers.keys()
            group = self.group()
            assert group is None or (group.is_empty and not group.members)


def settled(group: ClassicGroup) -> tuple[Any, ...]:
    """What members rely on between rebalances."""
    members = sorted(
        (
            each.member_id,
            each.group_instance_id,
            each.assignment,
            each.session_timeout_ms,
            each.rebalance_timeout_ms,
            each.metadata(group.protocol_name) if group.protocol_name else b"",
        )
        for each in group.members.values()
    )
    return (
        group.state,
        group.generation_id,
        group.protocol_name,
        group.leader_id,
        group.static_members,
        members,
    )


def hard_state(shard: GroupShard) -> tuple[dict[str, Any], list[Any]]:
    """What the log must give again."""
    groups = {
        group_id: group.persisted
        for group_id, group in shard.groups.items()
        if isinstance(group, ClassicGroup) and group.persisted is not None
    }
    return groups, sorted((key.group, key.topic, key.partition, repr(value)) for key, value in shard.offsets)


ClassicGroupMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestClassicGroups = ClassicGroupMachine.TestCase


def test_leaving_nobody_is_harmless() -> None:
    """A LeaveGroup without members is answered, and nothing happens."""
    driver = Driver()
    assert driver.ask(LeaveGroupRequest("g")).members == []
    assert driver.log == []
