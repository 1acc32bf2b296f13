"""What a ConsumerGroupHeartbeat must satisfy, in Kafka's words: clients and their logs show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.group_coordinator.consumer.assignors.spec import Partitions
from ottla.group_coordinator.consumer.member import (
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupMember,
    Held,
)
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

MAX_SUBSCRIPTION_CHARACTERS: Final = 1 << 20


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """What can be said without knowing the group."""
    if version >= 1 or request.member_epoch > 0 or request.member_epoch == LEAVE_EPOCH:
        _check_not_blank(request.member_id, "MemberId")
    _check_not_blank(request.group_id, "GroupId")
    _check_not_blank(request.instance_id, "InstanceId")
    _check_not_blank(request.rack_id, "RackId")
    if request.member_epoch == 0:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif request.member_epoch == LEAVE_STATIC_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < LEAVE_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if sum(map(len, request.subscribed_topic_names or ())) > MAX_SUBSCRIPTION_CHARACTERS:
        # Kafka's answer when a record does not fit into its log; here it is given before any work is done.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The subscription is larger than a record may be.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def check_room(group: ConsumerGroup, member_id: str, instance_id: str | None, max_size: int) -> None:
    """GROUP_MAX_SIZE_REACHED for one member too many; who is a member already, or takes a member's place, is not."""
    if instance_id is not None and instance_id in group.static_members:
        return
    if len(group.members) >= max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )


def check_epoch(member: ConsumerGroupMember, epoch: int, owned: Partitions | None) -> None:
    """FENCED_MEMBER_EPOCH unless the epoch is the member's; 0 joins again at any time.

    The epoch before is good too if the member owns no more than it was given: it has missed the last answer.
    """
    if epoch in (0, member.member_epoch):
        return
    if (
        epoch < member.member_epoch
        and epoch == member.previous_member_epoch
        and _is_within(owned, member.assigned)
    ):
        return
    relation = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def check_instance_released(member: ConsumerGroupMember, member_id: str) -> None:
    """UNRELEASED_INSTANCE_ID unless the static member is away."""
    if member.member_epoch != LEAVE_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {member.instance_id} cannot join the group because the "
            f"instance id is owned by {member.member_id} member.",
        )


def check_instance(
    member: ConsumerGroupMember | None, member_id: str, instance_id: str
) -> ConsumerGroupMember:
    """The static member, if the instance id is known and still this member's."""
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def _check_not_blank(text: str | None, field: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{field} can't be empty.")


def _is_within(owned: Partitions | None, held: Held) -> bool:
    return owned is not None and all(
        topic_id in held and partitions <= held[topic_id].keys() for topic_id, partitions in owned.items()
    )


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)
