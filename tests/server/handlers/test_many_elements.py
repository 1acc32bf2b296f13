"""Requests about many things are answered in turns with others, and as in one go."""

from itertools import count
from typing import Any

import pytest
import trio

from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic
from ottla.server import exchange, turns
from ottla.server.handlers import metadata, produce
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch


class Turns:
    """In place of the lock that everybody's turns share: counts them."""

    def __init__(self) -> None:
        self.count = 0

    async def acquire(self) -> None:
        self.count += 1
        await trio.lowlevel.checkpoint()

    def release(self) -> None:
        pass

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        pass


BATCH = build_batch([Record(0, 1, None, b"value", ())])


def test_answers_in_turns_are_the_same(raw: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata, OffsetForLeaderEpoch and Produce, in one go and in as many turns as possible."""
    for name in ("a", "b", "c"):
        create_topic(raw, name, partitions=2)
    asked: list[tuple[Any, int]] = [
        (MetadataRequest(topics=None), 9),
        (MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("b", "none", "a")]), 9),
        (
            OffsetForLeaderEpochRequest(
                topics=[
                    OffsetForLeaderTopic(
                        topic=name,
                        partitions=[OffsetForLeaderPartition(partition=n, leader_epoch=0) for n in range(3)],
                    )
                    for name in ("a", "b")
                ]
            ),
            4,
        ),
    ]
    for request, _ in asked[:2]:
        request.allow_auto_topic_creation = False
    quick = [raw.send(request, version) for request, version in asked]
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)
    monkeypatch.setattr(produce, "TURN_SECONDS", -1.0)
    monkeypatch.setattr(exchange, "QUICK_ELEMENTS", 0)
    monkeypatch.setattr(metadata, "_MANY", 0)
    assert [raw.send(request, version) for request, version in asked] == quick

    data = [PartitionProduceData(index=index, records=BATCH) for index in (1, 0, 7)]
    topics = [TopicProduceData(name=name, partition_data=data) for name in ("c", "a")]
    answered = raw.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    assert [
        [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses]
        for topic in answered.responses
    ] == [[(1, 0, 0), (0, 0, 0), (7, 3, -1)]] * 2


def test_a_topic_of_many_partitions_is_told_in_turns(raw: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small request about it is as much work as a large one, and has the same answer as in one go."""
    create_topic(raw, "wide", partitions=12)
    create_topic(raw, "narrow", partitions=1)
    [wide] = raw.send(MetadataRequest(topics=[MetadataRequestTopic(name="wide")]), 12).topics
    topics = [
        [MetadataRequestTopic(name="narrow"), MetadataRequestTopic(name="wide")],
        [MetadataRequestTopic(name=None, topic_id=wide.topic_id)],
        None,
    ]
    asked = [MetadataRequest(topics=each, allow_auto_topic_creation=False) for each in topics]
    asked.append(MetadataRequest(topics=[MetadataRequestTopic(name="wide")], allow_auto_topic_creation=True))
    quick = [raw.send(request, 12) for request in asked]
    seen = Turns()
    monkeypatch.setattr(metadata, "_MANY", 5)
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)
    monkeypatch.setattr(turns, "_lock_of_this_run", lambda: seen)
    assert [raw.send(request, 12) for request in asked] == quick
    assert seen.count > 4 * 12
    assert [each.partition_index for each in quick[1].topics[0].partitions] == list(range(12))


def test_many_topics_of_one_partition_are_told_in_turns(
    raw: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn ends when its time is over, however many topics it has gone through."""
    for number in range(20):
        create_topic(raw, f"topic-{number}")
    request = MetadataRequest(topics=None)
    quick = raw.send(request, 9)
    seen = Turns()
    clock = count()
    monkeypatch.setattr(metadata, "_MANY", 5)
    monkeypatch.setattr(turns, "perf_counter", lambda: next(clock) * turns.TURN_SECONDS / 4)
    monkeypatch.setattr(turns, "_lock_of_this_run", lambda: seen)
    assert raw.send(request, 9) == quick
    assert seen.count >= 2 + 2 * 20 // 5


def test_a_request_that_is_done_does_not_wait_for_a_turn(
    raw: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long its only batch took, the answer is there."""
    create_topic(raw, "single")
    monkeypatch.setattr(produce, "TURN_SECONDS", -1.0)
    monkeypatch.delattr(produce, "_go_on")
    data = [PartitionProduceData(index=0, records=BATCH)]
    topics = [TopicProduceData(name="single", partition_data=data)]
    (topic,) = raw.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9).responses
    assert [each.error_code for each in topic.partition_responses] == [0]
