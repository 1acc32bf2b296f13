"""Members of a consumer group, as their clients behave: they own what they were assigned, give up what they lose."""

from __future__ import annotations

from typing import Any

from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.group_coordinator.driver import Driver

Owned = dict[bytes, frozenset[int]]


class Member:
    """One member. `owned` is what it works on; a lost partition is reported as given up by the next heartbeat."""

    def __init__(self, driver: Driver, member_id: str, *topics: str, **settings: Any) -> None:
        self.driver = driver
        self.member_id = member_id
        self.topics = list(topics)
        self.epoch = 0
        self.owned: Owned = {}
        self.missed_an_answer = False
        self.group_id: str = settings.get("group_id", "g")
        self.instance_id: str | None = settings.get("instance_id")
        self.regex: str | None = settings.get("regex")
        self.assignor: str | None = settings.get("assignor")
        self.rebalance_timeout_ms: int = settings.get("rebalance_timeout_ms", 60_000)

    def join(self, **changed: Any) -> Any:
        """A full heartbeat with epoch 0."""
        self.epoch, self.owned = 0, {}
        return self.beat(**{**self.everything(), **changed})

    def everything(self) -> dict[str, Any]:
        """The fields of a full heartbeat."""
        return {
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": self.topics if self.regex is None or self.topics else None,
            "subscribed_topic_regex": self.regex,
            "server_assignor": self.assignor,
        }

    def beat(self, *, takes: bool = True, **changed: Any) -> Any:
        """A heartbeat with what the member owns; it takes in the answer unless that is lost on the way.

        After a lost answer clients tell everything again, and are therefore told their assignment again.
        """
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
            "topic_partitions": [TopicPartitions(topic, sorted(each)) for topic, each in self.owned.items()],
        }
        if self.missed_an_answer:
            fields |= self.everything()
        self.missed_an_answer = not takes
        answer = self.driver.ask(ConsumerGroupHeartbeatRequest(**{**fields, **changed}))
        if takes and answer.error_code == ErrorCode.NONE:
            self.take(answer)
        return answer

    def take(self, answer: Any) -> None:
        """Go to the epoch and to the assignment of an answer."""
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {
                each.topic_id: frozenset(each.partitions) for each in answer.assignment.topic_partitions
            }

    def leave(self, epoch: int = -1) -> Any:
        """Leave the group, for good or (-2) for a while."""
        answer = self.beat(member_epoch=epoch, topic_partitions=None, takes=False)
        self.owned = {}
        return answer

    @property
    def count(self) -> int:
        """How many partitions it owns."""
        return sum(map(len, self.owned.values()))


def settle(driver: Driver, *members: Member, rounds: int = 12) -> None:
    """Heartbeats of all members, a second apart, until everybody is where it should be."""
    for _ in range(rounds):
        for member in members:
            answer = member.beat()
            assert answer.error_code == ErrorCode.NONE, answer
        driver.pass_ms(1000)
