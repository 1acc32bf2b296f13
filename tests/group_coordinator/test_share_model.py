"""A share group under anything that members, topics, time, restarts and slow initialisation do to it.

After every step: every request was answered once, only partitions with a state are assigned and nobody gets one it does
not subscribe to, epochs never go back, and replay of the log gives the same group. At the end heartbeats alone bring
every subscribed partition to somebody, and every subscriber something to do.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.group_coordinator.effects import (
    InitializeShareState,
    ShareMemberGone,
    ShareStateInitialized,
    ShareStateRemoved,
    TopicsChanged,
)
from ottla.group_coordinator.share.state import ShareGroup
from ottla.group_coordinator.topics import Topic
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.group_coordinator.driver import Driver, FakeTopics

TOPICS = ("ta", "tb", "u")
GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)
any_topics = st.lists(st.sampled_from(TOPICS), unique=True, min_size=1)


class Client:
    """A member as its client sees itself."""

    def __init__(self, name: str, topics: list[str]) -> None:
        self.name = name
        self.topics = topics
        self.epoch = 0
        self.assigned: dict[bytes, frozenset[int]] = {}
        self.missed_an_answer = False


class ShareGroupMachine(RuleBasedStateMachine):
    """Up to five members."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(FakeTopics(Topic("ta", b"a" * 16, 3), Topic("u", b"u" * 16, 2)))
        self.clients: dict[str, Client] = {}
        self.next_number = 0
        self.next_topic_id = 0
        self.asked = 0
        self.group_epoch = 0
        self.epochs: dict[str, int] = {}
        self.gone: list[str] = []

    @property
    def group(self) -> ShareGroup | None:
        group = self.driver.shard.groups.get("g")
        return group if isinstance(group, ShareGroup) else None

    def ask(self, client: Client, epoch: int, topics: list[str] | None = None, *, takes: bool = True) -> Any:
        """One heartbeat, whose answer may be lost; after that a client tells everything again."""
        if topics is None and client.missed_an_answer and epoch >= 0:
            topics = client.topics
        self.asked += 1
        answer = self.driver.ask(
            ShareGroupHeartbeatRequest(
                group_id="g", member_id=client.name, member_epoch=epoch, subscribed_topic_names=topics
            )
        )
        client.missed_an_answer = not takes
        if answer.error_code in GONE:
            self.clients.pop(client.name, None)
        elif takes and epoch >= 0:
            assert answer.error_code == ErrorCode.NONE, answer
            client.epoch = answer.member_epoch
            if answer.assignment is not None:
                client.assigned = {
                    each.topic_id: frozenset(each.partitions) for each in answer.assignment.topic_partitions
                }
        return answer

    # What members do -------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.clients) < 5)
    @rule(topics=any_topics)
    def join(self, topics: list[str]) -> None:
        """A new member."""
        self.next_number += 1
        client = self.clients[f"m{self.next_number}"] = Client(f"m{self.next_number}", topics)
        assert self.ask(client, 0, topics).error_code == ErrorCode.NONE

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), lost=st.booleans())
    def beat(self, data: Any, lost: bool) -> None:
        """A member is alive."""
        client = data.draw(st.sampled_from(list(self.clients.values())))
        self.ask(client, client.epoch, takes=not lost)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topics=any_topics)
    def subscribe(self, data: Any, topics: list[str]) -> None:
        """A member reads other topics from now on."""
        client = data.draw(st.sampled_from(list(self.clients.values())))
        client.topics = topics
        self.ask(client, client.epoch, topics)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def rejoin(self, data: Any) -> None:
        """A member forgets everything and joins again under its id."""
        client = data.draw(st.sampled_from(list(self.clients.values())))
        assert self.ask(client, 0, client.topics).error_code == ErrorCode.NONE

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), wrong=st.sampled_from([-3, 1, 50]))
    def wrong_epoch(self, data: Any, wrong: int) -> None:
        """An epoch that is neither the member's nor the one before is fenced."""
        client = data.draw(st.sampled_from(list(self.clients.values())))
        group = self.group
        assert group is not None
        member = group.members.get(client.name)
        epoch = client.epoch + wrong
        if (
            member is not None
            and epoch > 0
            and epoch not in (member.member_epoch, member.previous_member_epoch)
        ):
            assert self.ask(client, epoch).error_code == ErrorCode.FENCED_MEMBER_EPOCH
            self.clients[client.name] = client

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: Any) -> None:
        """For good; whoever keeps its records is told."""
        client = data.draw(st.sampled_from(list(self.clients.values())))
        answer = self.ask(client, -1)
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)
        self.clients.pop(client.name, None)

    @precondition(lambda self: self.clients)
    @rule()
    def come_to_rest(self) -> None:
        """Everybody is alive, and the server does its work."""
        for _ in range(3):
            for client in list(self.clients.values()):
                self.ask(client, client.epoch)
            self.states_are_initialized(False)
            self.time_passes(1)

    # What happens around them ----------------------------------------------------------------------------

    @rule(fails=st.booleans())
    def states_are_initialized(self, fails: bool) -> None:
        """What the server was asked to do is done, or was in vain."""
        wanted = [each for each in self.driver.share_effects if isinstance(each, InitializeShareState)]
        self.gone += [
            each.member_id for each in self.driver.share_effects if isinstance(each, ShareMemberGone)
        ]
        self.driver.share_effects.clear()
        for effect in wanted:
            if not fails:
                self.driver.happen(ShareStateInitialized(effect.group_id, effect.partitions))

    @rule(seconds=st.sampled_from([1, 31, 46]))
    def time_passes(self, seconds: int) -> None:
        """Some sessions end."""
        self.driver.pass_ms(seconds * 1000)
        known = self.group.members if self.group is not None else {}
        self.clients = {name: client for name, client in self.clients.items() if name in known}

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

    @precondition(lambda self: self.group is not None and not self.clients and self.group.is_empty)
    @rule()
    def admin_deletes_states(self) -> None:
        """A group without members forgets a topic."""
        assert self.group is not None
        for topic_id in list(self.group.state_metadata.initialized)[:1]:
            self.driver.happen(ShareStateRemoved("g", frozenset({topic_id})))

    @rule()
    def restart(self) -> None:
        """Only the log survives."""
        self.driver.restart()

    # What must hold --------------------------------------------------------------------------------------

    @invariant()
    def every_request_is_answered_once(self) -> None:
        """The driver fails when one is answered twice."""
        assert len(self.driver.answers) == self.asked

    @invariant()
    def only_what_is_subscribed_and_has_a_state_is_assigned(self) -> None:
        """A deleted topic may linger until the next assignment."""
        if self.group is None:
            return
        initialized = self.group.state_metadata.initialized_partitions
        ids = {name: topic.topic_id for name, topic in self.driver.topics.topics.items()}
        for member in self.group.members.values():
            subscribed = {ids[name] for name in member.topic_names if name in ids}
            for topic_id, partitions in member.assigned.items():
                if topic_id in ids.values():
                    assert topic_id in subscribed
                    assert partitions <= initialized.get(topic_id, frozenset())

    @invariant()
    def epochs_never_go_back(self) -> None:
        """Of the group and its target, and of each member."""
        if self.group is None:
            return
        assert self.group_epoch <= self.group.group_epoch
        self.group_epoch = self.group.group_epoch
        assert self.group.assignment_epoch <= self.group_epoch
        for name, member in self.group.members.items():
            assert self.epochs.get(name, 0) <= member.member_epoch <= self.group_epoch
            self.epochs[name] = member.member_epoch

    @invariant()
    def replay_gives_the_same_group(self) -> None:
        """The log is all there is to know."""
        replayed, live = self.driver.replayed().groups.get("g"), self.group
        if live is None:
            assert replayed is None
            return
        assert isinstance(replayed, ShareGroup)
        for name in (
            "members",
            "target",
            "name_counts",
            "group_epoch",
            "assignment_epoch",
            "assignment_timestamp_ms",
            "metadata_hash",
            "state_name",
        ):
            assert getattr(replayed, name) == getattr(live, name), name
        for name in ("all_partitions", "initialized_partitions", "deleting"):
            assert getattr(replayed.state_metadata, name) == getattr(live.state_metadata, name), name

    def teardown(self) -> None:
        """Heartbeats, and a server that does its work, bring everything to somebody once the dead are missed."""
        for _ in range(12):
            for client in list(self.clients.values()):
                self.ask(client, client.epoch)
            self.states_are_initialized(False)
            self.time_passes(6)
        group, topics = self.group, self.driver.topics.topics
        if group is None or not self.clients:
            return
        assert group.members.keys() == self.clients.keys()
        assert {member.member_epoch for member in group.members.values()} == {group.group_epoch}
        wanted = {
            (topics[name].topic_id, index)
            for client in self.clients.values()
            for name in client.topics
            if name in topics
            for index in range(topics[name].partition_count)
        }
        assigned = {
            (topic_id, index)
            for client in self.clients.values()
            for topic_id, indexes in client.assigned.items()
            for index in indexes
        }
        assert assigned == wanted
        for client in self.clients.values():
            if any(name in topics for name in client.topics):
                assert client.assigned, client.name
        assert not set(self.gone) & group.members.keys()


TestShareGroup = ShareGroupMachine.TestCase
TestShareGroup.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
