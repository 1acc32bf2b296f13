"""Classic groups on the raw client: members that join, sync and commit in any version."""

from __future__ import annotations

from typing import Any

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

COORDINATOR_NOT_READY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def subscription(*topics: str) -> bytes:
    """What a consumer writes into its metadata."""
    body = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\1" + len(topics).to_bytes(4, "big") + body + b"\xff\xff\xff\xff" + b"\0\0\0\0"


def wait_for_coordinator(raw: RawClient, group_id: str) -> None:
    """Until the broker has made its offsets topic and coordinates the group."""

    def is_ready() -> bool:
        found = raw.send(FindCoordinatorRequest(coordinator_keys=[group_id]), 6).coordinators[0]
        if found.error_code != ErrorCode.NONE:
            return False
        error = raw.send(LeaveGroupRequest(group_id, members=[MemberIdentity("nobody")]), 5).error_code
        return error not in COORDINATOR_NOT_READY

    eventually(is_ready, True)


class RawMember:
    """A member with its own connection."""

    def __init__(self, bootstrap: str, group_id: str, **settings: Any) -> None:
        self.bootstrap = bootstrap
        self.raw = RawClient.to(bootstrap)
        self.group_id = group_id
        self.member_id = ""
        self.generation_id = -1
        self.instance_id: str | None = settings.get("instance_id")
        self.protocol_type: str = settings.get("protocol_type", "consumer")
        self.protocols: dict[str, bytes] = settings.get("protocols", {"range": subscription("t")})
        self.session_timeout_ms: int = settings.get("session_timeout_ms", 10_000)

    def join_request(self, version: int = 9) -> JoinGroupRequest:
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            member_id=self.member_id,
            protocol_type=self.protocol_type,
            protocols=[JoinGroupRequestProtocol(*each) for each in self.protocols.items()],
        )
        if version >= 1:
            request.rebalance_timeout_ms = 20_000
        if version >= 5:
            request.group_instance_id = self.instance_id
        return request

    def join(self, version: int = 9) -> Any:
        """Join, twice if an id is needed first."""
        answer = self.raw.send(self.join_request(version), version)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            answer = self.raw.send(self.join_request(version), version)
        if answer.error_code == ErrorCode.NONE:
            self.member_id, self.generation_id = answer.member_id, answer.generation_id
        return answer

    def sync_request(
        self, assignments: dict[str, bytes] | None = None, version: int = 5, **more: Any
    ) -> SyncGroupRequest:
        if version >= 5:
            more = {"protocol_type": self.protocol_type, "protocol_name": next(iter(self.protocols)), **more}
        return SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id if version >= 3 else None,
            assignments=[SyncGroupRequestAssignment(*each) for each in (assignments or {}).items()],
            **more,
        )

    def sync(self, assignments: dict[str, bytes] | None = None, version: int = 5, **more: Any) -> Any:
        return self.raw.send(self.sync_request(assignments, version, **more), version)

    def heartbeat(self, version: int = 4) -> int:
        request = HeartbeatRequest(self.group_id, self.generation_id, self.member_id)
        if version >= 3:
            request.group_instance_id = self.instance_id
        return int(self.raw.send(request, version).error_code)

    def leave(self, version: int = 5) -> Any:
        request = LeaveGroupRequest(self.group_id)
        if version < 3:
            request.member_id = self.member_id
        else:
            request.members = [MemberIdentity(self.member_id, self.instance_id)]
        return self.raw.send(request, version)

    def commit(self, topic: str, partition: int, offset: int, metadata: str | None = "", **more: Any) -> int:
        """Commit one offset as this member; the error code."""
        request = commit_request(self.group_id, topic, partition, offset, metadata, **more)
        request.member_id, request.generation_id_or_member_epoch = self.member_id, self.generation_id
        request.group_instance_id = self.instance_id
        return int(self.raw.send(request, 9).topics[0].partitions[0].error_code)

    def close(self) -> None:
        self.raw.close()


def commit_request(
    group_id: str, topic: str, partition: int, offset: int, metadata: str | None = "", leader_epoch: int = -1
) -> OffsetCommitRequest:
    committed = OffsetCommitRequestPartition(partition, offset, leader_epoch, metadata)
    return OffsetCommitRequest(
        group_id=group_id, topics=[OffsetCommitRequestTopic(name=topic, partitions=[committed])]
    )


def fetch_offset(raw: RawClient, group_id: str, topic: str, partition: int) -> Any:
    """What is committed, with its leader epoch and metadata."""
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics)])
    group = raw.send(request, 9).groups[0]
    assert group.error_code == ErrorCode.NONE, group
    return group.topics[0].partitions[0]
