"""Offsets committed in transactions: pending until the marker, and what happens to them meanwhile."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.group_coordinator.effects import TopicsChanged
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.group_coordinator.classic_client import Member, form_group
from tests.group_coordinator.driver import Driver
from tests.group_coordinator.test_offsets import DAY_MS, commit, committed

PRODUCER_ID = 7


def commit_in_txn(
    driver: Driver,
    offset: int = 7,
    *,
    producer_id: int = PRODUCER_ID,
    topic: str = "t",
    partition: int = 0,
    metadata: str | None = "",
    version: int = 5,
    **more: Any,
) -> ErrorCode:
    row = TxnOffsetCommitRequestPartition(partition, offset, committed_metadata=metadata)
    request = TxnOffsetCommitRequest(
        "tx",
        "g",
        producer_id,
        0,
        topics=[TxnOffsetCommitRequestTopic(topic, [row])],
        **more,
    )
    return ErrorCode(driver.ask(request, version).topics[0].partitions[0].error_code)


def fetch_stable(driver: Driver, *, everything: bool = False) -> tuple[int, str]:
    topics = None if everything else [OffsetFetchRequestTopics("t", bytes(16), [0])]
    request = OffsetFetchRequestGroup("g", topics=topics)
    (found,) = driver.shard.fetch_offsets(request, require_stable=True).topics[0].partitions
    return found.committed_offset, ErrorCode(found.error_code).name


def test_commit_and_abort() -> None:
    """The offset before counts until a commit marker; who wants stable offsets has to wait for either marker."""
    driver = Driver()
    commit(driver, 1)
    assert commit_in_txn(driver, 5) is ErrorCode.NONE
    assert committed(driver) == 1
    assert fetch_stable(driver) == (-1, "UNSTABLE_OFFSET_COMMIT")
    assert fetch_stable(driver, everything=True) == (-1, "UNSTABLE_OFFSET_COMMIT")
    driver.end_transaction(PRODUCER_ID, committed=True)
    assert fetch_stable(driver) == fetch_stable(driver, everything=True) == (5, "NONE")
    commit_in_txn(driver, 9)
    driver.end_transaction(PRODUCER_ID, committed=False)
    assert fetch_stable(driver) == (5, "NONE")


def test_metadata() -> None:
    """Null becomes empty, and one that is too large is refused."""
    driver = Driver()
    assert commit_in_txn(driver, metadata=None) is ErrorCode.NONE
    assert commit_in_txn(driver, metadata="x" * 4097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    driver.end_transaction(PRODUCER_ID, committed=True)
    assert committed(driver) == 7


def test_who_may_commit_to_a_classic_group() -> None:
    """A member of the generation, or a producer that says nothing of members; a rebalance is no hindrance."""
    driver = Driver()
    assert commit_in_txn(driver, generation_id=1, member_id="m") is ErrorCode.ILLEGAL_GENERATION
    member = Member(driver)
    form_group(driver, member)
    assert (
        commit_in_txn(driver, generation_id=member.generation_id, member_id=member.member_id)
        is ErrorCode.NONE
    )
    assert commit_in_txn(driver, version=2) is ErrorCode.NONE
    assert (
        commit_in_txn(driver, generation_id=member.generation_id + 1, member_id=member.member_id)
        is ErrorCode.ILLEGAL_GENERATION
    )
    assert (
        commit_in_txn(driver, generation_id=member.generation_id, member_id="x")
        is ErrorCode.UNKNOWN_MEMBER_ID
    )


def test_who_may_commit_to_a_consumer_group() -> None:
    """A stale member epoch is an illegal generation to producers."""
    driver = Driver()
    answer = driver.ask(
        ConsumerGroupHeartbeatRequest(
            "g",
            "m",
            0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
    )
    epoch = answer.member_epoch
    assert commit_in_txn(driver, generation_id=epoch, member_id="m") is ErrorCode.NONE
    assert commit_in_txn(driver, generation_id=epoch + 1, member_id="m") is ErrorCode.ILLEGAL_GENERATION
    assert commit_in_txn(driver, generation_id=epoch, member_id="x") is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_in_txn(driver) is ErrorCode.NONE


def test_pending_offsets_keep_from_expiring() -> None:
    """Neither the old offset of the partition nor the group goes while a transaction may still end."""
    driver = Driver(offsets_retention_minutes="1440")
    commit(driver, 1)
    commit_in_txn(driver, 5)
    commit_in_txn(driver, 6, topic="u")
    driver.pass_ms(3 * DAY_MS)
    assert committed(driver) == 1
    driver.end_transaction(PRODUCER_ID, committed=False)
    driver.pass_ms(DAY_MS)
    assert not driver.shard.groups


@pytest.mark.parametrize("how", ["offset", "group", "topic"])
def test_removing_what_is_pending(how: str) -> None:
    """Deleting the offset, its group or its topic removes it for good: the marker finds nothing."""
    driver = Driver()
    commit_in_txn(driver, 5)
    if how == "offset":
        partitions = [OffsetDeleteRequestPartition(0)]
        driver.ask(OffsetDeleteRequest("g", topics=[OffsetDeleteRequestTopic("t", partitions)]))
    elif how == "group":
        driver.ask(DeleteGroupsRequest(groups_names=["g"]))
    else:
        driver.happen(TopicsChanged(frozenset(), frozenset({"t"})))
    assert not driver.shard.offsets.pending
    assert not driver.replayed().offsets.pending
    driver.end_transaction(PRODUCER_ID, committed=True)
    assert committed(driver) == -1


def test_topic_that_went_while_nobody_looked() -> None:
    """Pending offsets of topics that are gone are removed when the log is loaded."""
    driver = Driver()
    commit_in_txn(driver, 5)
    del driver.topics.topics["t"]
    driver.restart()
    assert not driver.shard.offsets.pending


PRODUCERS = st.integers(1, 3)
PARTITIONS = st.integers(0, 1)
STEPS = st.one_of(
    st.tuples(st.just("commit"), PARTITIONS),
    st.tuples(st.just("commit in txn"), PARTITIONS, PRODUCERS),
    st.tuples(st.just("end"), PRODUCERS, st.booleans()),
    st.tuples(st.just("delete"), PARTITIONS),
)


class Model:
    """What counts is decided by the positions of records, kept for every offset."""

    def __init__(self) -> None:
        self.position = 0
        self.offsets: dict[int, tuple[int, int]] = {}  # partition: (position, offset)
        self.pending: dict[tuple[int, int], tuple[int, int]] = {}  # (producer, partition)

    def step(self, kind: str, first: int, second: Any = None) -> None:
        self.position += 1
        if kind == "commit":
            self.offsets[first] = (self.position, self.position)
        elif kind == "commit in txn":
            self.pending[second, first] = (self.position, self.position)
        elif kind == "end":
            for key in [key for key in self.pending if key[0] == first]:
                found = self.pending.pop(key)
                if second and found > self.offsets.get(key[1], (0, 0)):
                    self.offsets[key[1]] = found
        else:
            self.offsets.pop(first, None)
            self.pending = {key: found for key, found in self.pending.items() if key[1] != first}


@settings(deadline=None, max_examples=200)
@given(st.lists(STEPS, max_size=25))
def test_model(steps: list[tuple[Any, ...]]) -> None:
    """Of all records of a partition that count the last one wins, whenever its marker comes; a replay says the same."""
    driver, model = Driver(), Model()
    for step in steps:
        model.step(*step)
        if step[0] == "commit":
            commit(driver, model.position, partition=step[1])
        elif step[0] == "commit in txn":
            commit_in_txn(driver, model.position, partition=step[1], producer_id=step[2])
        elif step[0] == "end":
            driver.end_transaction(step[1], committed=step[2])
        else:
            partitions = [OffsetDeleteRequestPartition(step[1])]
            driver.ask(OffsetDeleteRequest("g", topics=[OffsetDeleteRequestTopic("t", partitions)]))
        for shard in (driver.shard, driver.replayed()):
            found = shard.offsets.of_group("g").get("t", {})
            assert {partition: value.offset for partition, value in found.items()} == {
                partition: offset for partition, (_, offset) in model.offsets.items()
            }
            unstable = {partition for _, partition in model.pending}
            assert {partition for _, partition in shard.offsets.pending.of_group("g")} == unstable
