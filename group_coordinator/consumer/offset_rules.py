"""Who may commit and fetch offsets of a consumer group.

A commit with the member's epoch is good. One with an older epoch is good for the partitions that the member has held
since then: its heartbeat may have moved it on while the commit was under way (KIP-1251).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.group_coordinator.consumer.member import ConsumerGroupMember
from ottla.group_coordinator.group import Committer, PartitionCheck
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.uuids import Uuid

if TYPE_CHECKING:
    from ottla.group_coordinator.consumer.state import ConsumerGroup

_EPOCHS_SINCE_VERSION: Final = 9


def check_commit(group: ConsumerGroup, committer: Committer) -> PartitionCheck | None:
    """KafkaError when this member may not commit now; a check for each partition when its epoch is an older one."""
    if committer.generation_id < 0 and not group.members:
        return None
    if (
        committer.is_transactional
        and committer.generation_id == -1
        and not committer.member_id
        and committer.group_instance_id is None
    ):
        return None
    member = group.member(committer.member_id)
    if not (committer.is_transactional or member.uses_classic_protocol) and (
        committer.api_version < _EPOCHS_SINCE_VERSION
    ):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
        )
    if committer.generation_id == member.member_epoch:
        return None
    if committer.generation_id > member.member_epoch:
        raise _stale(
            member, f"{committer.generation_id} is newer than current member epoch {member.member_epoch}."
        )
    return _older_epoch_check(member, committer.generation_id)


def check_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> None:
    """KafkaError when somebody asks as a member and is none, or is in another epoch."""
    if member_id is None and member_epoch < 0:
        return
    member = group.member(member_id or "")
    if member.member_epoch != member_epoch:
        raise _stale(
            member, f"{member_epoch} does not match the expected member epoch {member.member_epoch}."
        )


def _older_epoch_check(member: ConsumerGroupMember, epoch: int) -> PartitionCheck:
    def check(topic: str, topic_id: Uuid, partition: int) -> None:
        since = member.assigned.get(topic_id, {}).get(partition)
        if since is None:
            since = member.pending_revocation.get(topic_id, {}).get(partition)
        if since is None:
            raise KafkaError(
                _stale_code(member),
                f"Partition {topic}-{partition} is not assigned or pending revocation for member.",
            )
        if epoch < since:
            raise _stale(
                member, f"{epoch} is older than assignment epoch {since} for partition {topic}-{partition}."
            )

    return check


def _stale(member: ConsumerGroupMember, detail: str) -> KafkaError:
    name = "generation id" if member.uses_classic_protocol else "member epoch"
    return KafkaError(_stale_code(member), f"Received {name} {detail}")


def _stale_code(member: ConsumerGroupMember) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
