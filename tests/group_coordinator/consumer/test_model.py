"""A consumer group under anything that members, topics, time and restarts do to it.

After every step: no partition is held by two members, what clients work on is theirs, epochs never go back, and
replay of the log gives the same group. At the end: when everybody keeps sending heartbeats, the group becomes stable
and every partition has one owner.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.effects import TopicsChanged
from ottla.group_coordinator.topics import Topic
from ottla.wire.errors import ErrorCode
from tests.group_coordinator.consumer.member import Member
from tests.group_coordinator.driver import Driver, FakeTopics

TOPICS = ("ta", "tb", "u")
GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
any_topics = st.lists(st.sampled_from(TOPICS), unique=True)
any_regex = st.sampled_from([None, "", "t.", ".*", "none"])


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Up to five members, two of which may be static."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(FakeTopics(Topic("ta", b"a" * 16, 3), Topic("u", b"u" * 16, 2)))
        self.members: dict[str, Member] = {}
        self.away: dict[str, Member] = {}
        self.next_number = 0
        self.next_topic_id = 0
        self.epochs: dict[str, int] = {}
        self.group_epoch = 0

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.driver.shard.groups.get("g")
        return group if isinstance(group, ConsumerGroup) else None

    # What members do -------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.members) < 5)
    @rule(
        topics=any_topics,
        regex=any_regex,
        instance=st.sampled_from([None, None, "i", "j"]),
        assignor=st.data(),
    )
    def join(self, topics: list[str], regex: str | None, instance: str | None, assignor: Any) -> None:
        """A new member, or a static one that comes back under a new id."""
        self.next_number += 1
        name = assignor.draw(st.sampled_from([None, "range", "uniform"]))
        member = Member(
            self.driver, f"m{self.next_number}", *topics, regex=regex, instance_id=instance, assignor=name
        )
        # What a static member leaves out it inherits from its former self, so it says everything.
        answer = member.join(subscribed_topic_names=topics, subscribed_topic_regex=regex or "")
        taken = any(other.instance_id == instance for other in self.members.values())
        if instance is not None and taken:
            assert answer.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
            return
        assert answer.error_code == ErrorCode.NONE, answer
        self.members[member.member_id] = member
        if instance is not None:
            self.away.pop(instance, None)

    @precondition(lambda self: self.members)
    @rule(data=st.data(), lost=st.booleans())
    def beat(self, data: Any, lost: bool) -> None:
        """A heartbeat, whose answer may be lost; then the next one tells what the member still owns."""
        member = data.draw(st.sampled_from(list(self.members.values())))
        self.after(member, member.beat(takes=not lost))

    @precondition(lambda self: self.members)
    @rule(data=st.data(), topics=any_topics, regex=any_regex)
    def subscribe(self, data: Any, topics: list[str], regex: str | None) -> None:
        """A member reads other topics from now on."""
        member = data.draw(st.sampled_from(list(self.members.values())))
        answer = member.beat(subscribed_topic_names=topics, subscribed_topic_regex=regex)
        member.topics, member.regex = topics, member.regex if regex is None else regex
        self.after(member, answer)

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def rejoin(self, data: Any) -> None:
        """A dynamic member forgets everything and joins again under its id."""
        member = data.draw(st.sampled_from(list(self.members.values())))
        if member.instance_id is None:
            self.epochs.pop(member.member_id, None)
            assert member.join().error_code == ErrorCode.NONE

    @precondition(lambda self: self.members)
    @rule(data=st.data(), for_a_while=st.booleans())
    def leave(self, data: Any, for_a_while: bool) -> None:
        """For good, or a static member for a while."""
        member = data.draw(st.sampled_from(list(self.members.values())))
        static = member.instance_id is not None and for_a_while
        answer = member.leave(-2 if static else -1)
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)
        del self.members[member.member_id]
        if static and answer.error_code == ErrorCode.NONE:
            self.away[member.instance_id or ""] = member

    def after(self, member: Member, answer: Any) -> None:
        """Who is told that it is out drops everything; nothing else may go wrong."""
        if answer.error_code in GONE:
            del self.members[member.member_id]
        else:
            assert answer.error_code == ErrorCode.NONE, answer

    # What happens around them ----------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 11, 46]))
    def time_passes(self, seconds: int) -> None:
        """Some sessions end."""
        self.driver.pass_ms(seconds * 1000)
        known = self.group.members if self.group is not None else {}
        self.members = {name: member for name, member in self.members.items() if name in known}
        self.away = {key: member for key, member in self.away.items() if member.member_id in known}

    @rule(name=st.sampled_from(TOPICS), count=st.integers(1, 3))
    def topic_appears_or_grows(self, name: str, count: int) -> None:
        """A topic is created, or gets more partitions."""
        before = self.driver.topics.topics.get(name)
        if before is None:
            self.next_topic_id += 1
            topic = Topic(name, bytes([self.next_topic_id]) * 16, count)
        else:
            topic = before._replace(partition_count=before.partition_count + count)
        self.driver.topics.topics[name] = topic
        self.driver.topics.version += 1
        self.driver.happen(TopicsChanged(frozenset({name}), frozenset()))

    @rule(name=st.sampled_from(TOPICS))
    def topic_disappears(self, name: str) -> None:
        """A topic is deleted."""
        if self.driver.topics.topics.pop(name, None) is not None:
            self.driver.topics.version += 1
            self.driver.happen(TopicsChanged(frozenset(), frozenset({name})))

    @rule()
    def restart(self) -> None:
        """Only the log survives."""
        self.driver.restart()

    # What must hold --------------------------------------------------------------------------------------

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        """Neither in what the coordinator gave out and did not get back, nor in what clients work on."""
        if self.group is None:
            return
        held: dict[tuple[bytes, int], str] = {}
        for member in self.group.members.values():
            for partitions in (member.assigned, member.pending_revocation):
                for topic_id, numbers in partitions.items():
                    for number in numbers:
                        assert held.setdefault((topic_id, number), member.member_id) == member.member_id
        for name, client in self.members.items():
            for topic_id, numbers in client.owned.items():
                for number in numbers:
                    assert held[topic_id, number] == name

    @invariant()
    def epochs_never_go_back(self) -> None:
        """Of the group, and of each member until it joins anew."""
        if self.group is None:
            return
        assert self.group_epoch <= self.group.group_epoch
        self.group_epoch = self.group.group_epoch
        assert self.group.assignment_epoch <= self.group_epoch
        for name, member in self.group.members.items():
            if name in self.members:
                assert self.epochs.get(name, 0) <= member.member_epoch <= self.group_epoch
                self.epochs[name] = member.member_epoch

    @invariant()
    def replay_gives_the_same_group(self) -> None:
        """The log is all there is to know."""
        replayed = self.driver.replayed().groups.get("g")
        live = self.group
        if live is None:
            assert replayed is None
            return
        assert isinstance(replayed, ConsumerGroup)
        for name in (
            "members",
            "target",
            "static_members",
            "resolved_regexes",
            "name_counts",
            "regex_counts",
        ):
            assert getattr(replayed, name) == getattr(live, name), name
        for name in ("group_epoch", "assignment_epoch", "metadata_hash", "_partition_epochs", "state_name"):
            assert getattr(replayed, name) == getattr(live, name), name

    def teardown(self) -> None:
        """Heartbeats alone bring the group to its target."""
        self.driver.pass_ms(11_000)
        self.time_passes(1)
        for _ in range(8):
            for member in list(self.members.values()):
                self.after(member, member.beat())
            self.driver.pass_ms(1000)
        group = self.group
        if group is None or not self.members or self.away:
            return
        assert group.state_name == "Stable"
        subscribed = {topic for member in self.members.values() for topic in self.topics_of(member)}
        topics = self.driver.topics.topics
        wanted = {
            (topics[name].topic_id, n) for name in subscribed for n in range(topics[name].partition_count)
        }
        owned = [
            (t, n) for member in self.members.values() for t, numbers in member.owned.items() for n in numbers
        ]
        assert sorted(owned) == sorted(wanted)

    def topics_of(self, member: Member) -> set[str]:
        """Those of a member's topics that exist."""
        by_regex = {"t.": {"ta", "tb"}, ".*": set(TOPICS)}.get(member.regex or "", set())
        return (set(member.topics) | by_regex) & self.driver.topics.topics.keys()


TestConsumerGroup = ConsumerGroupMachine.TestCase
TestConsumerGroup.settings = settings(max_examples=40, stateful_step_count=25)
