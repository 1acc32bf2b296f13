"""Who may commit and fetch offsets of a consumer group."""

import pytest

from ottla.group_coordinator.consumer.member import ClassicMember, ConsumerGroupMember
from ottla.group_coordinator.consumer.offset_rules import check_commit, check_fetch
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.group import Committer
from ottla.wire.errors import ErrorCode, KafkaError

T = b"t" * 16


def group_with_member(classic: bool = False) -> ConsumerGroup:
    """A member m in epoch 5 that has t-0 since epoch 3 and has to give up t-1, which it has since epoch 4."""
    group = ConsumerGroup("g")
    group.put_member(
        ConsumerGroupMember(
            "m",
            member_epoch=5,
            assigned={T: {0: 3}},
            pending_revocation={T: {1: 4}},
            classic=ClassicMember(1, ()) if classic else None,
        )
    )
    return group


def refusal(group: ConsumerGroup, committer: Committer, partition: int = 0) -> ErrorCode | None:
    """The error of a commit for a partition of t."""
    try:
        check = check_commit(group, committer)
        if check is not None:
            check("t", T, partition)
    except KafkaError as error:
        return error.code
    return None


@pytest.mark.parametrize(
    ("epoch", "partition", "expected"),
    [
        (5, 0, None),
        (5, 9, None),
        (6, 0, ErrorCode.STALE_MEMBER_EPOCH),
        (4, 0, None),
        (3, 0, None),
        (2, 0, ErrorCode.STALE_MEMBER_EPOCH),
        (4, 1, None),
        (3, 1, ErrorCode.STALE_MEMBER_EPOCH),
        (4, 9, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_the_epoch_of_a_commit(epoch: int, partition: int, expected: ErrorCode | None) -> None:
    """An older epoch is good for what the member has had since then; classic members learn it as a generation."""
    assert refusal(group_with_member(), Committer("m", None, epoch, 9), partition) == expected
    old = expected and ErrorCode.ILLEGAL_GENERATION
    assert refusal(group_with_member(classic=True), Committer("m", None, epoch, 8), partition) == old


def test_who_commits() -> None:
    """Members only, with a version that knows epochs; anybody while the group is empty."""
    assert refusal(group_with_member(), Committer("x", None, 5, 9)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(group_with_member(), Committer("", None, -1, 9)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(group_with_member(), Committer("m", None, 5, 8)) == ErrorCode.UNSUPPORTED_VERSION
    assert refusal(ConsumerGroup("g"), Committer("", None, -1, 9)) is None
    assert refusal(group_with_member(), Committer("", None, -1, 5, is_transactional=True)) is None
    assert refusal(group_with_member(), Committer("m", None, 5, 5, is_transactional=True)) is None


def test_who_fetches() -> None:
    """Who does not say that it is a member, and members in their epoch."""
    group = group_with_member()
    check_fetch(group, None, -1)
    check_fetch(group, "m", 5)
    with pytest.raises(KafkaError) as stale:
        check_fetch(group, "m", 4)
    assert stale.value.code is ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(KafkaError) as unknown:
        check_fetch(group, "x", 5)
    assert unknown.value.code is ErrorCode.UNKNOWN_MEMBER_ID
