"""Random histories of consumer groups (KIP-848), played to two brokers step by step.

Both get the same requests, but for the topic ids and generated member ids, which every broker makes itself; these are
replaced by names before answers are compared. Members ask for the range assignor, whose result depends on no order, and
assignments are made without a pause, so nothing but the requests decides what happens.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

from compat_tests.raw_client import RawClient
from ottla.group_coordinator.consumer.consumer_protocol import (
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.schema import encode

TOPICS: Final = {"ta": 3, "tb": 4, "tc": 1}
INSTANCES: Final = (None, None, None, "i", "j")
Owned = dict[str, list[int]]


class Side:
    """One broker: its connection, its topic ids by name, and its member ids by the names that the history uses."""

    def __init__(self, raw: RawClient, topic_ids: dict[str, bytes]) -> None:
        self.raw = raw
        self.topic_ids = topic_ids
        self.topic_names = {topic_id: name for name, topic_id in topic_ids.items()}
        self.real_ids: dict[str, str] = {}

    def real(self, member: str) -> str:
        return self.real_ids.get(member, member)

    def told(self, text: str | None) -> str | None:
        """An error message with names for generated ids."""
        for name, real in self.real_ids.items():
            text = text and text.replace(real, name)
        return text

    def owned(self, assignment: Any) -> Owned:
        return {
            self.topic_names[each.topic_id]: sorted(each.partitions)
            for each in sorted(assignment.topic_partitions, key=lambda each: self.topic_names[each.topic_id])
        }


@dataclass
class Client:
    """What a member knows. Those of the classic protocol have their generation as their epoch."""

    name: str
    instance: str | None
    is_classic: bool = False
    topics: list[str] = field(default_factory=list)
    epoch: int = 0
    owned: Owned = field(default_factory=dict)
    before: Owned = field(default_factory=dict)


class History:
    """One random history of one group."""

    def __init__(self, seed: int, group_id: str, sides: list[Side]) -> None:
        self.random = random.Random(seed)
        self.group_id = group_id
        self.sides = sides
        self.clients: list[Client] = []
        self.gone: list[Client] = []
        self.steps: list[str] = []
        self.number = 0
        self.last_described: dict[str, Any] = {}
        self.is_over = False

    def play(self, count: int) -> None:
        """So many steps, or fewer when the group becomes a classic one."""
        if not self.steps and self.random.random() < 0.3:
            self.classic_group_first()
        for _ in range(count):
            if self.is_over:
                return
            self.step()
            self.describe()

    def step(self) -> None:
        """Anything that members do."""
        actions: list[tuple[int, Any]] = [(3 if len(self.clients) < 5 else 0, self.join)]
        if self.clients:
            actions += [(10, self.beat), (2, self.wrong_beat), (2, self.subscribe), (1, self.rejoin)]
            actions += [(2, self.leave), (2, self.commit), (1, self.fetch_offsets)]
        if self.gone:
            actions += [(1, self.late_beat)]
        weights, choices = zip(*actions, strict=True)
        self.random.choices(choices, weights)[0]()

    # Requests ----------------------------------------------------------------------------------------------

    def heartbeat(self, client: Client, **fields: Any) -> dict[str, Any]:
        """The same heartbeat to both; the answer that both gave."""
        self.steps.append(f"heartbeat {client.name} {fields}")
        owned: Owned | None = fields.pop("owned", client.owned)

        def ask(side: Side) -> dict[str, Any]:
            request = ConsumerGroupHeartbeatRequest(
                **{
                    "group_id": self.group_id,
                    "member_id": side.real(client.name),
                    "member_epoch": client.epoch,
                    "instance_id": client.instance,
                    "topic_partitions": None
                    if owned is None
                    else [TopicPartitions(side.topic_ids[topic], each) for topic, each in owned.items()],
                    **fields,
                }
            )
            answer = side.raw.send(request, 1)
            return {
                "code": answer.error_code,
                "message": side.told(answer.error_message),
                "epoch": answer.member_epoch,
                "interval": answer.heartbeat_interval_ms,
                "assignment": None if answer.assignment is None else side.owned(answer.assignment),
            }

        answered: dict[str, Any] = self.same(ask)
        return answered

    def same(self, ask: Any) -> Any:
        """Ask all, and compare."""
        answers = [ask(side) for side in self.sides]
        self.steps += [f"    {answer}" for answer in answers]
        assert all(answer == answers[0] for answer in answers), "\n".join(self.steps)
        return answers[0]

    def take(self, client: Client, answer: dict[str, Any]) -> None:
        """Do what a member does with an answer: who is fenced joins anew some time, or never."""
        if answer["code"] == ErrorCode.NONE:
            client.epoch = answer["epoch"]
            if answer["assignment"] is not None:
                client.before, client.owned = client.owned, answer["assignment"]
        elif client in self.clients and answer["code"] in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.FENCED_INSTANCE_ID,
        ):
            client.epoch, client.owned = 0, {}

    # Actions -----------------------------------------------------------------------------------------------

    def pick(self) -> Client:
        return self.random.choice(self.clients)

    def some_topics(self, least: int = 0) -> list[str]:
        return sorted(self.random.sample(list(TOPICS), self.random.randint(least, len(TOPICS))))

    def join(self) -> None:
        instance = self.random.choice(INSTANCES)
        self.number += 1
        # One that joins with no topic while an assignment is due gets some by mistake from Kafka, though never to read.
        client = Client(f"m{self.number}", instance, topics=self.some_topics(least=1))
        client.is_classic = self.random.random() < 0.25 and bool(self.clients)
        if client.is_classic:
            self.classic_join(client, knows_its_id=instance is None)
        else:
            self.consumer_join(client)

    def consumer_join(self, client: Client) -> None:
        client.owned, client.epoch = {}, 0
        answer = self.heartbeat(
            client,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=client.topics,
            server_assignor="range",
            rack_id=self.random.choice([None, None, "r"]),
        )
        if answer["code"] == ErrorCode.NONE:
            self.take_place_of(client)
            self.take(client, answer)

    def take_place_of(self, client: Client) -> None:
        """A static member replaces the one before it."""
        for other in list(self.clients):
            if other is client or (client.instance is not None and other.instance == client.instance):
                self.clients.remove(other)
                if other is not client:
                    self.gone.append(other)
        self.clients.append(client)

    def rejoin(self) -> None:
        client = self.pick()
        if client.is_classic:
            self.classic_join(client, knows_its_id=True)
        else:
            self.consumer_join(client)

    def beat(self) -> None:
        client = self.pick()
        if client.is_classic:
            self.classic_beat(client)
            return
        fields: dict[str, Any] = {}
        draw = self.random.random()
        if draw < 0.15:
            fields["owned"] = None
        elif draw < 0.3:
            fields["owned"] = client.before  # it has not given up what it lost
        elif draw < 0.4:
            fields |= {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": client.topics}
        answer = self.heartbeat(client, **fields)
        if self.random.random() < 0.85:  # or the answer is lost
            self.take(client, answer)

    def wrong_beat(self) -> None:
        client = self.pick()
        epoch = self.random.choice([client.epoch - 1, client.epoch + 1, 1, 99])
        if client.is_classic:
            self.classic_beat(client, generation=epoch)
        elif epoch > 0:
            self.heartbeat(client, member_epoch=epoch)

    def late_beat(self) -> None:
        client = self.random.choice(self.gone)
        if client.is_classic:
            self.classic_beat(client)
        elif client.epoch > 0:
            self.heartbeat(client)

    def subscribe(self) -> None:
        client = self.pick()
        client.topics = self.some_topics()
        if client.is_classic:
            self.classic_join(client, knows_its_id=True)
        elif client.epoch > 0:
            self.take(client, self.heartbeat(client, subscribed_topic_names=client.topics))

    def leave(self) -> None:
        client = self.pick()
        if client.is_classic:
            self.classic_leave(client)
        else:
            epoch = -1 if client.instance is None else self.random.choice([-1, -2])
            self.heartbeat(client, member_epoch=epoch, owned=None)
        self.clients.remove(client)
        self.gone.append(client)

    # The classic protocol ----------------------------------------------------------------------------------

    def classic_group_first(self) -> None:
        """A classic group of one static member, which the first member of the new protocol turns into another."""
        client = Client("old", "i", is_classic=True, topics=["ta", "tb"])
        self.classic_join(client, knows_its_id=False)
        self.classic_sync(client, leads=True)

    def classic_join(self, client: Client, *, knows_its_id: bool) -> None:
        self.steps.append(f"join {client.name} {client.instance} {client.topics}")

        def ask(side: Side) -> dict[str, Any]:
            request = JoinGroupRequest(
                group_id=self.group_id,
                session_timeout_ms=45_000,
                rebalance_timeout_ms=60_000,
                member_id=side.real(client.name) if knows_its_id else "",
                group_instance_id=client.instance,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol("range", subscription_of(client))],
            )
            answer = side.raw.send(request, 9)
            if answer.error_code == ErrorCode.NONE and not knows_its_id:
                side.real_ids[client.name] = answer.member_id
            return {
                "code": answer.error_code,
                "epoch": answer.generation_id,
                "protocol": (answer.protocol_type, answer.protocol_name),
                "leader": side.told(answer.leader),
                "skip": answer.skip_assignment,
                "assignment": None,
            }

        answer = self.same(ask)
        if answer["code"] == ErrorCode.NONE:
            self.take_place_of(client)
            self.take(client, answer)
            if client.name != "old" or self.clients != [client]:
                self.classic_sync(client)

    def classic_sync(self, client: Client, *, leads: bool = False) -> None:
        self.steps.append(f"sync {client.name}")

        def ask(side: Side) -> dict[str, Any]:
            request = SyncGroupRequest(
                group_id=self.group_id,
                generation_id=client.epoch,
                member_id=side.real(client.name),
                group_instance_id=client.instance,
                protocol_type="consumer",
                protocol_name="range",
            )
            if leads:
                mine = b"\0\1\0\0\0\1\0\2ta\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0\2\xff\xff\xff\xff"
                request.assignments = [SyncGroupRequestAssignment(side.real(client.name), mine)]
            answer = side.raw.send(request, 5)
            dealt = read_assignment(bytes(answer.assignment)).assigned_partitions if answer.assignment else []
            return {
                "code": answer.error_code,
                "epoch": client.epoch,
                "assignment": {
                    each.topic: sorted(each.partitions) for each in sorted(dealt, key=lambda each: each.topic)
                },
            }

        self.take(client, self.same(ask))

    def classic_beat(self, client: Client, generation: int | None = None) -> None:
        self.steps.append(f"classic beat {client.name} {generation}")

        def ask(side: Side) -> int:
            request = HeartbeatRequest(
                group_id=self.group_id,
                generation_id=client.epoch if generation is None else generation,
                member_id=side.real(client.name),
                group_instance_id=client.instance,
            )
            return int(side.raw.send(request, 4).error_code)

        if self.same(ask) == ErrorCode.REBALANCE_IN_PROGRESS and client in self.clients:
            self.classic_join(client, knows_its_id=True)

    def classic_leave(self, client: Client) -> None:
        self.steps.append(f"classic leave {client.name}")

        def ask(side: Side) -> Any:
            members = [MemberIdentity(side.real(client.name), client.instance)]
            answer = side.raw.send(LeaveGroupRequest(self.group_id, members=members), 5)
            return answer.error_code, [each.error_code for each in answer.members]

        self.same(ask)

    # What is seen ------------------------------------------------------------------------------------------

    def commit(self) -> None:
        client = self.pick()
        topic = self.random.choice(list(TOPICS))
        epoch = self.random.choice([client.epoch, client.epoch - 1, client.epoch + 1, 1])
        self.steps.append(f"commit {client.name} {topic} {epoch}")

        def ask(side: Side) -> list[int]:
            partitions = [OffsetCommitRequestPartition(index, 7) for index in range(TOPICS[topic])]
            request = OffsetCommitRequest(
                group_id=self.group_id,
                generation_id_or_member_epoch=epoch,
                member_id=side.real(client.name),
                group_instance_id=client.instance,
                topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)],
            )
            (answer,) = side.raw.send(request, 9).topics
            return [each.error_code for each in answer.partitions]

        self.same(ask)

    def fetch_offsets(self) -> None:
        client = self.pick()
        epoch = self.random.choice([client.epoch, client.epoch + 1, -1])
        self.steps.append(f"fetch offsets {client.name} {epoch}")

        def ask(side: Side) -> Any:
            group = OffsetFetchRequestGroup(
                group_id=self.group_id, member_id=side.real(client.name), member_epoch=epoch, topics=None
            )
            (answer,) = side.raw.send(OffsetFetchRequest(groups=[group]), 9).groups
            return answer.error_code, sorted(
                (topic.name, each.partition_index, each.committed_offset)
                for topic in answer.topics
                for each in topic.partitions
            )

        self.same(ask)

    def describe(self) -> None:
        self.steps.append("describe")
        answer = self.same(lambda side: described(side, self.group_id))
        self.last_described = answer
        self.is_over = bool(self.clients) and answer["code"] != ErrorCode.NONE


def subscription_of(client: Client) -> bytes:
    """What a client of the classic protocol says when it joins; it may not have given up what it lost."""
    owned = [TopicPartition(topic=topic, partitions=each) for topic, each in client.owned.items()]
    return b"\0\1" + encode(ConsumerProtocolSubscription(topics=client.topics, owned_partitions=owned), 1)


def described(side: Side, group_id: str) -> dict[str, Any]:
    """A group as a broker describes it."""
    (group,) = side.raw.send(ConsumerGroupDescribeRequest(group_ids=[group_id]), 1).groups
    return {
        "code": group.error_code,
        "message": group.error_message,
        "state": group.group_state,
        "epochs": (group.group_epoch, group.assignment_epoch),
        "assignor": group.assignor_name,
        "members": sorted(
            (
                side.told(member.member_id),
                member.instance_id or "",
                member.rack_id or "",
                member.member_epoch,
                member.member_type,
                sorted(member.subscribed_topic_names),
                member.subscribed_topic_regex or "",
                side.owned(member.assignment),
                side.owned(member.target_assignment),
            )
            for member in group.members
        ),
    }
