"""Fetch where only Ottla's own state shows: passes over very many partitions take turns and miss nothing."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.config.broker_config import BrokerConfig
from ottla.server.broker import Broker
from ottla.server.context import RequestContext
from ottla.server.handlers.fetch import handle_fetch
from ottla.server.topic_creation import create_topics
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.records import Record, build_batch

PARTITIONS = 5
MAX_WAIT_MS = 60_000


@pytest.fixture
async def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RequestContext]:
    monkeypatch.setattr("ottla.server.fetching._PARTITIONS_PER_TURN", 2)
    config = BrokerConfig.load({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)})
    broker = await Broker.open(config, config.listeners(), random.Random(1))
    topic = CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
    await create_topics(broker, CreateTopicsRequest(topics=[topic]))
    made = RequestContext(broker, "PLAINTEXT", "127.0.0.1")
    made.api_version = 11
    yield made
    await broker.close()


def fetch_all(
    context: RequestContext, min_bytes: int = 1, max_wait_ms: int = MAX_WAIT_MS, partitions: int = PARTITIONS
) -> object:
    wanted = [FetchPartition(partition=index, partition_max_bytes=1000) for index in range(partitions)]
    topics = [FetchTopic(topic="t", partitions=wanted)]
    return handle_fetch(
        context, FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=1 << 20, topics=topics)
    )


def append(context: RequestContext, partition: int) -> None:
    batch = memoryview(bytearray(build_batch([Record(0, 1, b"k", b"v", ())])))
    context.broker.partitions.by_name("t", partition).append(batch, context.broker.now_ms())


def partitions_with_records(response: FetchResponse) -> list[int]:
    (topic,) = response.responses
    return [data.partition_index for data in topic.partitions if data.records]


async def test_what_is_appended_during_a_pass_is_not_missed(
    context: RequestContext, autojump_clock: trio.testing.MockClock
) -> None:
    """A record behind the pass wakes the fetch at once, not when its time is up."""
    answers = []

    async def fetch() -> None:
        answers.append(await fetch_all(context))  # type: ignore[misc]

    started = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fetch)
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        append(context, 0)
    assert trio.current_time() == started
    assert [partitions_with_records(answer) for answer in answers] == [[0]]
    assert not context.broker.partitions.by_name("t", 1).waiters


async def test_what_is_appended_before_the_wait_begins_is_not_missed(
    context: RequestContext, autojump_clock: trio.testing.MockClock
) -> None:
    """Earlier answers are sent first, which may take time, before a fetch that found nothing begins to wait."""
    waiting = fetch_all(context, partitions=1)
    append(context, 0)
    started = trio.current_time()
    assert partitions_with_records(await waiting) == [0]  # type: ignore[misc]
    assert trio.current_time() == started


async def test_many_partitions_wait_until_their_time_is_up(
    context: RequestContext, autojump_clock: trio.testing.MockClock
) -> None:
    """Too little is answered at the deadline, and at once when the client does not wait."""
    append(context, PARTITIONS - 1)
    started = trio.current_time()
    answer = await fetch_all(context, min_bytes=10_000)  # type: ignore[misc]
    assert partitions_with_records(answer) == [PARTITIONS - 1]
    assert trio.current_time() == started + MAX_WAIT_MS / 1000
    answer = await fetch_all(context, min_bytes=10_000, max_wait_ms=0)  # type: ignore[misc]
    assert partitions_with_records(answer) == [PARTITIONS - 1]
    assert trio.current_time() == started + MAX_WAIT_MS / 1000
