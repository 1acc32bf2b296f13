"""Members of share groups (KIP-932) on the raw client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import share_acknowledge, share_fetch
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.share_fetch import ShareFetchRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

GROUP_RESOURCE = 32
Batch = tuple[int, int, Sequence[int]]


def configure_group(raw: RawClient, group: str, **configs: str) -> None:
    """Set configs of a group; underscores stand for dots."""
    changes = [
        AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=changes)
    (answer,) = raw.send(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answer.error_code == ErrorCode.NONE, answer.error_message


class RawShareConsumer:
    """A member of a share group with a share session."""

    def __init__(self, raw: RawClient, group_id: str, member_id: str, *topics: str) -> None:
        self.raw = raw
        self.group_id = group_id
        self.member_id = member_id
        self.topics = list(topics)
        self.epoch = 0
        self.session_epoch = 0
        self.assigned: dict[bytes, list[int]] = {}

    # Membership --------------------------------------------------------------------------------------------

    def join(self) -> Any:
        """A heartbeat with epoch 0 and everything in it."""
        self.epoch = 0
        return self.beat(subscribed_topic_names=self.topics)

    def beat(self, **changed: Any) -> Any:
        """A heartbeat; what it is told it takes in."""
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
        }
        answer = self.raw.send(ShareGroupHeartbeatRequest(**{**fields, **changed}), 1)
        if answer.error_code == ErrorCode.NONE and answer.member_epoch >= 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {
                    each.topic_id: sorted(each.partitions) for each in answer.assignment.topic_partitions
                }
        return answer

    def join_and_wait(self, partition_count: int) -> None:
        """Join, and send heartbeats until so many partitions are assigned."""
        self.join()

        def is_assigned() -> bool:
            self.beat()
            return sum(map(len, self.assigned.values())) == partition_count

        eventually(is_assigned, True)

    def leave(self) -> Any:
        return self.beat(member_epoch=-1)

    # Records -----------------------------------------------------------------------------------------------

    def fetch(
        self, topic_id: bytes, *partitions: int, version: int = 2, acks: Sequence[Batch] = (), **changed: Any
    ) -> Any:
        """One ShareFetch; acknowledgements are for the first partition."""
        batches = [share_fetch.AcknowledgementBatch(first, last, list(types)) for first, last, types in acks]
        wanted = [
            share_fetch.FetchPartition(
                partition_index=index, acknowledgement_batches=batches if not number else []
            )
            for number, index in enumerate(partitions)
        ]
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "share_session_epoch": self.session_epoch,
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": 1_000_000,
            "max_records": 500,
            "batch_size": 500,
            "topics": [share_fetch.FetchTopic(topic_id=topic_id, partitions=wanted)] if wanted else [],
        }
        answer = self.raw.send(ShareFetchRequest(**{**fields, **changed}), version)
        self._advance(answer, changed)
        return answer

    def acknowledge(self, topic_id: bytes, index: int, *acks: Batch, version: int = 2, **changed: Any) -> Any:
        """One ShareAcknowledge."""
        batches = [
            share_acknowledge.AcknowledgementBatch(first, last, list(types)) for first, last, types in acks
        ]
        partition = share_acknowledge.AcknowledgePartition(
            partition_index=index, acknowledgement_batches=batches
        )
        fields: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "share_session_epoch": self.session_epoch,
            "topics": [share_acknowledge.AcknowledgeTopic(topic_id=topic_id, partitions=[partition])],
        }
        answer = self.raw.send(ShareAcknowledgeRequest(**{**fields, **changed}), version)
        self._advance(answer, changed)
        return answer

    def _advance(self, answer: Any, changed: dict[str, Any]) -> None:
        epoch = changed.get("share_session_epoch", self.session_epoch)
        if answer.error_code == ErrorCode.NONE:
            self.session_epoch = 0 if epoch == -1 else epoch + 1


def acquired(answer: Any) -> dict[int, list[tuple[int, int, int]]]:
    """First offset, last offset and delivery count of what was acquired, by partition."""
    return {
        partition.partition_index: [
            (each.first_offset, each.last_offset, each.delivery_count) for each in partition.acquired_records
        ]
        for topic in answer.responses
        for partition in topic.partitions
    }


def ack_codes(answer: Any) -> list[tuple[int, str | None]]:
    """Code and message of each partition of a ShareAcknowledge."""
    return [
        (partition.error_code, partition.error_message)
        for topic in answer.responses
        for partition in topic.partitions
    ]
