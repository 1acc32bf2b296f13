"""Offsets committed in transactions in every version: when they count, who may commit them, and what removes them."""

from typing import Any

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_consumer_groups import RawConsumer
from compat_tests.raw_groups import (
    RawMember,
    commit_request,
    fetch_offset,
    wait_for_coordinator,
)
from compat_tests.raw_topics import create_topic
from compat_tests.raw_transactions import RawProducer
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

VERSIONS = range(TxnOffsetCommitRequest.MIN_VERSION, TxnOffsetCommitRequest.MAX_VERSION + 1)
ADDS_GROUP_SINCE = 5
ABORT, COMMIT = False, True


@pytest.fixture
def topic(raw: RawClient, topic_name: str) -> tuple[str, bytes]:
    """A topic of three partitions: its name, which is also the group's and the transactional id, and its id."""
    wait_for_coordinator(raw, topic_name)
    return topic_name, create_topic(raw, topic_name, 3)


@pytest.fixture
def name(topic: tuple[str, bytes]) -> str:
    return topic[0]


@pytest.fixture
def producer(raw: RawClient, name: str) -> RawProducer:
    made = RawProducer(raw, name)
    assert made.init() == ErrorCode.NONE
    return made


def commit(
    producer: RawProducer, offset: int = 7, version: int = 5, metadata: str | None = "note", **more: Any
) -> dict[tuple[str, int], str]:
    """Commit an offset of partition 0, of one that does not exist, and of a topic that does not exist."""
    name = producer.transactional_id
    rows = [TxnOffsetCommitRequestPartition(index, offset, 3, metadata) for index in (0, 9)]
    fields = {
        "transactional_id": name,
        "group_id": name,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        **more,
    }
    topics = [TxnOffsetCommitRequestTopic(each, rows) for each in (name, "no-such-topic")]
    answer = producer.raw.send(TxnOffsetCommitRequest(topics=topics, **fields), version)
    assert [topic.name for topic in answer.topics] == [name, "no-such-topic"]
    return {
        (topic.name.replace(name, "t"), row.partition_index): ErrorCode(row.error_code).name
        for topic in answer.topics
        for row in topic.partitions
    }


def answered(error: str) -> dict[tuple[str, int], str]:
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    return {("t", 9): unknown, ("t", 0): error, ("no-such-topic", 0): unknown, ("no-such-topic", 9): unknown}


def add_group(producer: RawProducer) -> None:
    """AddOffsetsToTxn, which clients of transactions V2 do not send."""
    name = producer.transactional_id
    request = AddOffsetsToTxnRequest(name, producer.producer_id, producer.producer_epoch, name)
    eventually(lambda: producer.raw.send(request, 3).error_code, ErrorCode.NONE)


def end(producer: RawProducer, committed: bool) -> None:
    """End the transaction and wait for its markers: Kafka answers before they are written."""
    assert producer.end(committed) == ErrorCode.NONE
    eventually(producer.state, "CompleteCommit" if committed else "CompleteAbort")


def committed(raw: RawClient, name: str) -> tuple[int, int, str]:
    found = fetch_offset(raw, name, name, 0)
    return found.committed_offset, found.committed_leader_epoch, found.metadata


@pytest.mark.parametrize("version", VERSIONS)
def test_commit_and_abort(raw: RawClient, name: str, producer: RawProducer, version: int) -> None:
    """They count from the commit on; partitions that do not exist are refused one by one; an abort forgets them."""
    for offset, ends in ((7, COMMIT), (8, ABORT)):
        if version < ADDS_GROUP_SINCE:
            add_group(producer)
        assert commit(producer, offset, version) == answered("NONE")
        end(producer, ends)
    epoch = 3 if version >= 2 else -1
    assert committed(raw, name) == (7, epoch, "note")


@pytest.mark.parametrize("version", VERSIONS)
def test_refusals(raw: RawClient, name: str, producer: RawProducer, version: int) -> None:
    """Producers that have no such transaction, and groups that are none."""
    if version < ADDS_GROUP_SINCE:
        not_added = "TRANSACTION_ABORTABLE" if version == 4 else "INVALID_TXN_STATE"
        assert commit(producer, version=version) == answered(not_added)
        add_group(producer)
    unknown_id = producer.producer_id + 1_000_000
    assert commit(producer, version=version, producer_id=unknown_id) == answered(
        "INVALID_PRODUCER_ID_MAPPING"
    )
    assert commit(producer, version=version, producer_epoch=9) == answered("INVALID_PRODUCER_EPOCH")
    assert commit(producer, version=version, transactional_id="no-such-id") == answered(
        "INVALID_PRODUCER_ID_MAPPING"
    )
    assert commit(producer, version=version, group_id="") == answered("INVALID_GROUP_ID")
    if version >= 3:
        assert commit(producer, version=version, generation_id=1, member_id="m") == answered(
            "ILLEGAL_GENERATION"
        )
    assert commit(producer, version=version, metadata="x" * 4097) == answered("OFFSET_METADATA_TOO_LARGE")
    assert commit(producer, version=version, metadata=None) == answered("NONE")
    assert commit(producer, version=version, producer_epoch=9) == answered("INVALID_PRODUCER_EPOCH")


def test_members_of_a_classic_group(raw: RawClient, bootstrap: str, name: str, producer: RawProducer) -> None:
    """The generation counts where one is told; whoever tells nothing of members is trusted."""
    member = RawMember(bootstrap, name)
    member.join()
    member.sync({member.member_id: b"part"})
    assert commit(producer) == answered("NONE")
    right: dict[str, Any] = {"generation_id": member.generation_id, "member_id": member.member_id}
    assert commit(producer, **right) == answered("NONE")
    assert commit(producer, **{**right, "generation_id": 9}) == answered("ILLEGAL_GENERATION")
    assert commit(producer, **{**right, "member_id": "x"}) == answered("UNKNOWN_MEMBER_ID")
    assert commit(producer, **right, group_instance_id="i") == answered("UNKNOWN_MEMBER_ID")
    end(producer, COMMIT)
    assert committed(raw, name)[0] == 7
    member.close()


def test_members_of_a_consumer_group(raw: RawClient, name: str, producer: RawProducer) -> None:
    """The member's epoch is its generation."""
    member = RawConsumer(raw, name, "m", name)
    member.join()
    right: dict[str, Any] = {"generation_id": member.epoch, "member_id": "m"}
    assert commit(producer, **right) == answered("NONE")
    assert commit(producer, **{**right, "generation_id": member.epoch + 1}) == answered("ILLEGAL_GENERATION")
    assert commit(producer, **{**right, "member_id": "x"}) == answered("UNKNOWN_MEMBER_ID")
    assert commit(producer) == answered("NONE")


def stable(raw: RawClient, topic: tuple[str, bytes], version: int, *, everything: bool = False) -> Any:
    """Error and offset of every partition of a group, if stable ones are wanted."""
    name, topic_id = topic
    if version < 8:
        topics = None if everything else [OffsetFetchRequestTopic(name, [0, 1])]
        answer = raw.send(OffsetFetchRequest(group_id=name, topics=topics, require_stable=True), version)
        group = answer
    else:
        wanted = None if everything else [OffsetFetchRequestTopics(name, topic_id, [0, 1])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=name, topics=wanted)], require_stable=True
        )
        (group,) = raw.send(request, version).groups
    return {
        row.partition_index: (ErrorCode(row.error_code).name, row.committed_offset)
        for each in group.topics
        for row in each.partitions
    }


@pytest.mark.parametrize("version", range(7, OffsetFetchRequest.MAX_VERSION + 1))
def test_stable_offsets(
    raw: RawClient, topic: tuple[str, bytes], producer: RawProducer, version: int
) -> None:
    """Who wants them waits for the end of the transaction, also for partitions that have no offset yet."""
    name, _ = topic
    unstable = ("UNSTABLE_OFFSET_COMMIT", -1)
    assert commit(producer) == answered("NONE")
    assert stable(raw, topic, version) == {0: unstable, 1: ("NONE", -1)}
    assert stable(raw, topic, version, everything=True) == {}
    assert committed(raw, name)[0] == -1
    for partition, offset in ((0, 3), (1, 4)):
        raw.send(commit_request(name, name, partition, offset), 8)
    assert stable(raw, topic, version) == {0: unstable, 1: ("NONE", 4)}
    assert stable(raw, topic, version, everything=True) == {0: unstable, 1: ("NONE", 4)}
    assert committed(raw, name)[0] == 3
    end(producer, COMMIT)
    assert stable(raw, topic, version) == {0: ("NONE", 3), 1: ("NONE", 4)}, "the later commit counts"


@pytest.mark.parametrize("how", ["offset", "group"])
def test_removing_what_is_pending(raw: RawClient, name: str, producer: RawProducer, how: str) -> None:
    """It is gone for good: the transaction commits nothing."""
    assert commit(producer) == answered("NONE")
    if how == "offset":
        topics = [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)])]
        answer = raw.send(OffsetDeleteRequest(name, topics=topics), 0)
        assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, 0)
    else:
        (result,) = raw.send(DeleteGroupsRequest([name]), 2).results
        assert result.error_code == ErrorCode.NONE
    end(producer, COMMIT)
    assert committed(raw, name)[0] == -1
