"""Members of consumer groups (KIP-848) on the raw client."""

from __future__ import annotations

from typing import Any

from compat_tests.raw_client import RawClient
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

Owned = dict[bytes, list[int]]


class RawConsumer:
    """A member; it owns what it was last assigned, and says so with every heartbeat."""

    def __init__(self, raw: RawClient, group_id: str, member_id: str, *topics: str, **settings: Any) -> None:
        self.raw = raw
        self.group_id = group_id
        self.member_id = member_id
        self.topics = list(topics)
        self.regex: str | None = settings.get("regex")
        self.instance_id: str | None = settings.get("instance_id")
        self.assignor: str | None = settings.get("assignor")
        self.epoch = 0
        self.owned: Owned = {}

    def join(self, **changed: Any) -> Any:
        """A full heartbeat with epoch 0."""
        self.epoch, self.owned = 0, {}
        full: dict[str, Any] = {
            "rebalance_timeout_ms": 30_000,
            "subscribed_topic_names": None if self.regex else self.topics,
            "subscribed_topic_regex": self.regex,
            "server_assignor": self.assignor,
        }
        return self.beat(**{**full, **changed})

    def beat(self, version: int = 1, **changed: Any) -> Any:
        """A heartbeat; what it is told it takes in."""
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
            "topic_partitions": [TopicPartitions(topic, numbers) for topic, numbers in self.owned.items()],
        }
        answer = self.raw.send(ConsumerGroupHeartbeatRequest(**{**fields, **changed}), version)
        if answer.error_code == ErrorCode.NONE and answer.member_epoch >= 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {
                    each.topic_id: sorted(each.partitions) for each in answer.assignment.topic_partitions
                }
        return answer

    def leave(self, epoch: int = -1) -> Any:
        """Leave for good, or (-2) for a while."""
        return self.beat(member_epoch=epoch, topic_partitions=None)


def describe(raw: RawClient, group_id: str, version: int = 1) -> Any:
    """A group as ConsumerGroupDescribe shows it."""
    (group,) = raw.send(ConsumerGroupDescribeRequest(group_ids=[group_id]), version).groups
    return group
