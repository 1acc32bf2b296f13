"""Members of a classic group, as their clients behave."""

from __future__ import annotations

from typing import Any

from ottla.wire.errors import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.group_coordinator.driver import Driver


def subscription(*topics: str) -> bytes:
    """What a consumer writes into its metadata."""
    body = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\1" + len(topics).to_bytes(4, "big") + body + b"\xff\xff\xff\xff" + b"\0\0\0\0"


class Member:
    """One member. Its id and generation are what it was last told."""

    def __init__(self, driver: Driver, group_id: str = "g", **settings: Any) -> None:
        self.driver = driver
        self.group_id = group_id
        self.member_id = ""
        self.generation_id = -1
        self.instance_id: str | None = settings.get("instance_id")
        self.protocol_type: str = settings.get("protocol_type", "consumer")
        self.protocols: dict[str, bytes] = settings.get("protocols", {"range": subscription("t")})
        self.session_timeout_ms: int = settings.get("session_timeout_ms", 10_000)
        self.rebalance_timeout_ms: int = settings.get("rebalance_timeout_ms", 60_000)

    def join(self, api_version: int = 9) -> int:
        """Send JoinGroup, twice if an id is needed first; the waiter comes back."""
        waiter = self.send_join(api_version)
        answer = self.driver.answers.get(waiter)
        if answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            waiter = self.send_join(api_version)
        return waiter

    def send_join(self, api_version: int = 9) -> int:
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            member_id=self.member_id,
            protocol_type=self.protocol_type,
            protocols=[JoinGroupRequestProtocol(*each) for each in self.protocols.items()],
        )
        if api_version >= 1:
            request.rebalance_timeout_ms = self.rebalance_timeout_ms
        if api_version >= 5:
            request.group_instance_id = self.instance_id
        return self.driver.send(request, api_version)

    def joined(self, waiter: int) -> Any:
        """Take in the answer to a JoinGroup that went well."""
        answer = self.driver.answers[waiter]
        assert answer.error_code == ErrorCode.NONE, answer
        self.member_id, self.generation_id = answer.member_id, answer.generation_id
        return answer

    def sync(self, assignments: dict[str, bytes] | None = None, **more: Any) -> int:
        return self.driver.send(
            SyncGroupRequest(
                group_id=self.group_id,
                generation_id=self.generation_id,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                assignments=[SyncGroupRequestAssignment(*each) for each in (assignments or {}).items()],
                **more,
            )
        )

    def heartbeat(self) -> int:
        """The error code of a heartbeat."""
        answer = self.driver.ask(
            HeartbeatRequest(self.group_id, self.generation_id, self.member_id, self.instance_id)
        )
        return int(answer.error_code)

    def leave(self) -> Any:
        return self.driver.ask(
            LeaveGroupRequest(self.group_id, members=[MemberIdentity(self.member_id, self.instance_id)])
        )


def form_group(driver: Driver, *members: Member) -> None:
    """Bring the members into a stable generation; each is assigned its own id, in bytes."""
    waiters = [member.join() for member in members]
    driver.wait_for(*waiters)
    answers = [member.joined(waiter) for member, waiter in zip(members, waiters, strict=True)]
    assignments = {member.member_id: member.member_id.encode() for member in members}
    syncs = [
        member.sync(assignments if answer.leader == member.member_id else None)
        for member, answer in zip(members, answers, strict=True)
    ]
    for member, waiter in zip(members, syncs, strict=True):
        assert driver.answers[waiter].assignment == member.member_id.encode()
