"""Whatever is asked, the answers of requests that are worked through in turns and in threads are those of one go.

The same requests are played twice, to topics and groups of different names: as usual, and with every request being
large, every turn over at once and every piece of one partition. Names, ids and times are replaced by words before the
answers are compared.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import trio

from compat_tests.raw_client import RawClient, plain
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_topics import create_topic
from compat_tests.raw_transactions import RawProducer
from ottla.log_store.deletion import SEGMENTS_AT_ONCE
from ottla.server import exchange, fetching, topic_pieces, turns
from ottla.server.handlers import metadata, produce
from ottla.server.transactions import endings, markers
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_partition_reassignments,
    consumer_group_describe,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    list_groups,
    list_offsets,
    offset_commit,
    offset_delete,
    offset_fetch,
    share_group_describe,
    txn_offset_commit,
    write_txn_markers,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

PARTITIONS = 5
TOPIC_CONFIG, BROKER_CONFIG = 2, 4
REPLACED = dict.fromkeys(
    ("topic_id", "log_dir", "producer_id", "session_id", "last_timestamp", "port", "log_append_time_ms"), "*"
) | {"total_bytes": "*", "usable_bytes": "*"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    """One for each way, so that they have the same to tell."""
    with Broker(auto_create_topics_enable=False) as running:
        yield running


def test_answers_are_those_of_one_go(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every API that works in turns."""
    quick = play(broker)
    monkeypatch.setattr(exchange, "QUICK_ELEMENTS", 0)
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)
    monkeypatch.setattr(produce, "TURN_SECONDS", -1.0)
    monkeypatch.setattr(topic_pieces, "PIECE_PARTITIONS", 1)
    monkeypatch.setattr(fetching, "_PARTITIONS_PER_TURN", 0)
    monkeypatch.setattr(markers, "_AT_ONCE", 0)
    monkeypatch.setattr(endings, "_MANY_PARTITIONS", 0)
    monkeypatch.setattr(metadata, "_MANY", 0)
    with Broker(auto_create_topics_enable=False) as other:
        slow = play(other)
    assert slow.keys() == quick.keys()
    for name, answer in quick.items():
        assert slow[name] == answer, name


def play(broker: Broker) -> dict[str, Any]:
    """The answers by the names of what was asked."""
    answers: dict[str, Any] = {}
    with RawClient.to(broker.bootstrap) as raw:

        def ask(request: Any, version: int, name: str = "") -> Any:
            answer = raw.send(request, version)
            answers[name or type(request).__name__] = plain(answer, REPLACED)
            return answer

        for name in ("a", "b"):
            create_topic(raw, name, PARTITIONS)
        wait_for_coordinator(raw, "group")
        _topics(ask)
        _records(ask)
        _offsets(ask)
        _transactions(ask, raw)
        _groups(ask)
    return answers


def _topics(ask: Any) -> None:
    made = [create_topics.CreatableTopic(f"new-{n}", 2, 1) for n in range(4)]
    ask(create_topics.CreateTopicsRequest(topics=made), 7)
    more = [create_partitions.CreatePartitionsTopic(f"new-{n}", 4 - n, None) for n in range(4)]
    ask(create_partitions.CreatePartitionsRequest(topics=more, timeout_ms=10_000), 3)
    gone = [delete_topics.DeleteTopicState(name=f"new-{n}") for n in (0, 2, 7)]
    ask(delete_topics.DeleteTopicsRequest(topics=gone, timeout_ms=10_000), 6)
    described = [describe_topic_partitions.TopicRequest(name=name) for name in ("b", "none", "new-1", "a")]
    for limit in (3, 2000):
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=described, response_partition_limit=limit
        )
        ask(request, 0, f"DescribeTopicPartitions, {limit}")
    changes = [
        incremental_alter_configs.AlterConfigsResource(
            kind, name, [incremental_alter_configs.AlterableConfig(config, 0, "86400000")]
        )
        for kind, name, config in (
            (TOPIC_CONFIG, "a", "retention.ms"),
            (TOPIC_CONFIG, "none", "retention.ms"),
            (BROKER_CONFIG, "", "log.retention.ms"),
        )
    ]
    ask(incremental_alter_configs.IncrementalAlterConfigsRequest(resources=changes), 1)
    resources = [
        describe_configs.DescribeConfigsResource(kind, name, None)
        for kind, name in ((TOPIC_CONFIG, "b"), (TOPIC_CONFIG, "none"), (TOPIC_CONFIG, "a"))
    ]
    ask(describe_configs.DescribeConfigsRequest(resources, include_synonyms=True), 4)
    moved = [
        alter_partition_reassignments.ReassignableTopic(
            name,
            [
                alter_partition_reassignments.ReassignablePartition(n, nodes)
                for n, nodes in ((0, [1]), (1, [9]), (8, [1]))
            ],
        )
        for name in ("a", "none")
    ]
    ask(alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=moved), 1)
    ask(elect_leaders.ElectLeadersRequest(topic_partitions=None), 2)


def _records(ask: Any) -> None:
    batch = build_batch([Record(number, 1000 + number, None, b"value", ()) for number in range(4)])
    data = [PartitionProduceData(index, batch) for index in (3, 0, 9, 1)]
    topics = [TopicProduceData(name, partition_data=data) for name in ("a", "none", "b")]
    ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    for timestamp in (-1, -2, -3, 1002, 9999):
        wanted = [list_offsets.ListOffsetsPartition(n, -1, timestamp) for n in (0, 9, 2, 1, 1)]
        named = [list_offsets.ListOffsetsTopic(name, wanted) for name in ("a", "none", "b")]
        ask(list_offsets.ListOffsetsRequest(-1, topics=named), 7, f"ListOffsets, {timestamp}")
    fetched = [fetch.FetchPartition(n, fetch_offset=1, partition_max_bytes=10_000) for n in (1, 9, 0, 2)]
    for name, epoch in (("Fetch", -1), ("Fetch with a session", 0)):
        request = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=100_000,
            session_epoch=epoch,
            topics=[fetch.FetchTopic("b", partitions=fetched), fetch.FetchTopic("none", partitions=fetched)],
        )
        answer = ask(request, 11, name)
    again = fetch.FetchRequest(
        max_wait_ms=10,
        min_bytes=1,
        max_bytes=100_000,
        session_id=answer.session_id,
        session_epoch=1,
        topics=[fetch.FetchTopic("b", partitions=[fetch.FetchPartition(0, fetch_offset=4)])],
        forgotten_topics_data=[fetch.ForgottenTopic("none", partitions=[1, 9, 0, 2])],
    )
    ask(again, 11, "Fetch in a session")
    deleted = [
        delete_records.DeleteRecordsPartition(n, offset) for n, offset in ((0, 2), (1, -1), (3, 9), (9, 0))
    ]
    ask(delete_records.DeleteRecordsRequest([delete_records.DeleteRecordsTopic("a", deleted)], 1000), 2)
    ask(describe_log_dirs.DescribeLogDirsRequest(topics=None), 4)
    chosen = [describe_log_dirs.DescribableLogDirTopic("a", [1, 3])]
    ask(describe_log_dirs.DescribeLogDirsRequest(topics=chosen), 4, "DescribeLogDirs of some")


def _offsets(ask: Any) -> None:
    committed = [offset_commit.OffsetCommitRequestPartition(n, 10 + n, -1, "") for n in (2, 9, 0, 1)]
    topics = [
        offset_commit.OffsetCommitRequestTopic(name, partitions=committed) for name in ("b", "none", "a")
    ]
    ask(offset_commit.OffsetCommitRequest("group", topics=topics), 9)
    ask(offset_commit.OffsetCommitRequest("other", topics=topics[:1]), 9, "OffsetCommit of another group")
    fenced = offset_commit.OffsetCommitRequest("group", 3, "nobody", topics=topics)
    ask(fenced, 9, "OffsetCommit of nobody")
    named = [
        offset_fetch.OffsetFetchRequestTopics(name, partition_indexes=[0, 2, 9]) for name in ("a", "none")
    ]
    groups = [
        offset_fetch.OffsetFetchRequestGroup("group", topics=None),
        offset_fetch.OffsetFetchRequestGroup("other", topics=named),
        offset_fetch.OffsetFetchRequestGroup("none", topics=named),
    ]
    ask(offset_fetch.OffsetFetchRequest(groups=groups), 9)
    gone = [
        offset_delete.OffsetDeleteRequestTopic(
            name, [offset_delete.OffsetDeleteRequestPartition(n) for n in (2, 9, 0)]
        )
        for name in ("b", "none")
    ]
    ask(offset_delete.OffsetDeleteRequest("group", gone), 0)
    ask(offset_delete.OffsetDeleteRequest("none", gone), 0, "OffsetDelete of a group that is not there")
    ask(offset_fetch.OffsetFetchRequest(groups=groups[:1]), 9, "OffsetFetch after that")


def _transactions(ask: Any, raw: RawClient) -> None:
    producer = RawProducer(raw, "producer", 1)
    assert producer.init() == 0
    who = producer.producer_id, producer.producer_epoch
    added = add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="producer",
        v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
    )
    for name, indexes in (("with an unknown one", [0, 9]), ("", [3, 0, 2])):
        added.v3_and_below_topics = [add_partitions_to_txn.AddPartitionsToTxnTopic("a", indexes)]
        ask(added, 3, f"AddPartitionsToTxn {name}")
    batch = build_batch(
        [Record(0, 1000, None, b"value", ())],
        producer_id=who[0],
        producer_epoch=who[1],
        base_sequence=0,
        is_transactional=True,
    )
    data = [PartitionProduceData(index, batch) for index in (3, 0, 1, 2)]
    sent = ProduceRequest(
        "producer", acks=-1, timeout_ms=1000, topic_data=[TopicProduceData("a", partition_data=data)]
    )
    ask(sent, 9, "transactional Produce")
    sent.transactional_id = "somebody"
    ask(sent, 9, "transactional Produce of somebody else")
    ask(add_offsets_to_txn.AddOffsetsToTxnRequest("producer", *who, "group"), 3)
    offsets = [txn_offset_commit.TxnOffsetCommitRequestPartition(n, 20 + n, -1, "") for n in (3, 9, 1)]
    topics = [txn_offset_commit.TxnOffsetCommitRequestTopic(name, offsets) for name in ("a", "none", "b")]
    ask(txn_offset_commit.TxnOffsetCommitRequest("producer", "group", *who, topics=topics), 3)
    ask(
        txn_offset_commit.TxnOffsetCommitRequest("producer", "", *who, topics=topics),
        3,
        "TxnOffsetCommit of no group",
    )
    asked = [describe_producers.TopicRequest("a", [0, 9, 3]), describe_producers.TopicRequest("none", [0])]
    ask(describe_producers.DescribeProducersRequest(asked), 0)
    ask(end_txn.EndTxnRequest("producer", *who, committed=True), 3)
    committed = [offset_fetch.OffsetFetchRequestGroup("group", topics=None)]
    ask(offset_fetch.OffsetFetchRequest(groups=committed), 9, "OffsetFetch after a transaction")
    marked = [write_txn_markers.WritableTxnMarkerTopic(name, [1, 9, 0]) for name in ("a", "none")]
    marker = write_txn_markers.WritableTxnMarker(77, 0, True, marked, 0)
    ask(write_txn_markers.WriteTxnMarkersRequest(markers=[marker]), 1)


def _groups(ask: Any) -> None:
    names = ["group", "none", "other"]
    ask(find_coordinator.FindCoordinatorRequest(coordinator_keys=names), 6)
    ask(list_groups.ListGroupsRequest(), 5)
    ask(describe_groups.DescribeGroupsRequest(names), 6)
    ask(consumer_group_describe.ConsumerGroupDescribeRequest(names), 1)
    ask(share_group_describe.ShareGroupDescribeRequest(names), 1)
    ask(delete_groups.DeleteGroupsRequest([*names, "", "group"]), 2)
    deleted = [delete_topics.DeleteTopicState(name="b")]
    ask(delete_topics.DeleteTopicsRequest(topics=deleted, timeout_ms=10_000), 6, "DeleteTopics with offsets")
    ask(list_groups.ListGroupsRequest(), 5, "ListGroups at the end")


@pytest.mark.parametrize(
    ("version", "error"), [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (10, ErrorCode.UNKNOWN_TOPIC_ID)]
)
def test_a_topic_that_is_deleted_amid_a_large_commit(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, version: int, error: ErrorCode
) -> None:
    """Nothing is committed for it any more, or the next topic of its name would begin there."""
    with RawClient.to(broker.bootstrap) as raw:
        ids = {name: create_topic(raw, name) for name in ("a", "b")}
        wait_for_coordinator(raw, "group")

    def delete_topic() -> None:
        with RawClient.to(broker.bootstrap) as other:
            topics = [delete_topics.DeleteTopicState(name="b")]
            other.send(delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=10_000), 6)

    class Interrupted(turns.Turns):
        async def rest(self) -> None:
            monkeypatch.setattr(topic_pieces, "Turns", turns.Turns)
            await self.outside(trio.to_thread.run_sync(delete_topic))

    monkeypatch.setattr(exchange, "QUICK_ELEMENTS", 0)
    monkeypatch.setattr(topic_pieces, "PIECE_PARTITIONS", 1)
    monkeypatch.setattr(topic_pieces, "Turns", Interrupted)
    partitions = [offset_commit.OffsetCommitRequestPartition(0, 77, -1, "")]
    topics = [offset_commit.OffsetCommitRequestTopic(name, ids[name], partitions) for name in ("a", "b")]
    with RawClient.to(broker.bootstrap) as raw:
        answer = raw.send(offset_commit.OffsetCommitRequest("group", topics=topics), version)
        results = [topic.partitions[0].error_code for topic in answer.topics]
        assert sorted(results) == [ErrorCode.NONE, error]
        create_topic(raw, "b")
        wanted = [offset_fetch.OffsetFetchRequestTopics(name, partition_indexes=[0]) for name in ("a", "b")]
        asked = offset_fetch.OffsetFetchRequest(
            groups=[offset_fetch.OffsetFetchRequestGroup("group", topics=wanted)]
        )
        found = raw.send(asked, 9).groups[0].topics
        assert {topic.name: topic.partitions[0].committed_offset for topic in found} == {"a": 77, "b": -1}


def test_all_segments_before_the_new_start_are_deleted(broker: Broker) -> None:
    """However many they are."""
    with RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "a", segment_bytes="1048576")
        records = build_batch([Record(0, 1, None, bytes(600_000), ())])
        for _ in range(2 * SEGMENTS_AT_ONCE + 5):
            data = [TopicProduceData("a", partition_data=[PartitionProduceData(0, records)])]
            answer = raw.send(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data), 9)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        wanted = [delete_records.DeleteRecordsTopic("a", [delete_records.DeleteRecordsPartition(0, -1)])]
        answer = raw.send(delete_records.DeleteRecordsRequest(wanted, 10_000), 2)
        assert answer.topics[0].partitions[0].low_watermark == 2 * SEGMENTS_AT_ONCE + 5
        asked = describe_log_dirs.DescribeLogDirsRequest([describe_log_dirs.DescribableLogDirTopic("a", [0])])
        (partition,) = raw.send(asked, 4).results[0].topics[0].partitions
        assert partition.partition_size < 1_000_000
