"""Locks of share partitions by the clock: they run out, are renewed, and count deliveries; limits of a group apply."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from ottla.config.broker_config import BrokerConfig
from ottla.group_coordinator.share_state.shard import SharePartitionKey
from ottla.server.broker import Broker
from ottla.server.context import RequestContext
from ottla.server.handlers.incremental_alter_configs import handle_incremental_alter_configs
from ottla.server.handlers.share_acknowledge import handle_share_acknowledge
from ottla.server.handlers.share_fetch import handle_share_fetch
from ottla.server.internal_topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from ottla.server.topic_creation import create_missing_topics
from ottla.wire.messages import share_acknowledge, share_fetch
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.records import Record, build_batch

ACCEPT, RELEASE, RENEW = 1, 2, 4
GROUP_RESOURCE = 32
Rows = list[tuple[int, int, int]]


@pytest.fixture
async def broker(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Broker]:
    """With a topic `t` of one partition, whose state the group g has from offset 0 on."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "offsets.topic.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
    }
    config = BrokerConfig.load(settings)
    opened = await Broker.open(config, config.listeners(), random.Random(1))
    await create_missing_topics(opened, [OFFSETS_TOPIC, SHARE_STATE_TOPIC, "t"])
    nursery.start_soon(opened.groups.run)
    nursery.start_soon(opened.share.run)
    await opened.share.states.initialize(key_of(opened), 1, 0)
    yield opened
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await opened.close()


def topic_id_of(broker: Broker) -> bytes:
    return broker.image.topics_by_name["t"].topic_id


def key_of(broker: Broker) -> SharePartitionKey:
    return SharePartitionKey("g", topic_id_of(broker), 0)


def append(broker: Broker, count: int) -> None:
    """One batch of so many records."""
    records = [Record(number, broker.now_ms(), None, b"x") for number in range(count)]
    partition = broker.partitions.by_id(topic_id_of(broker), 0)
    partition.append(memoryview(bytearray(build_batch(records))), broker.now_ms())


async def configure(broker: Broker, **configs: str) -> None:
    changes = [
        AlterableConfig(name=f"share.{name.replace('_', '.')}", config_operation=0, value=value)
        for name, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name="g", configs=changes)
    context = RequestContext(broker, "PLAINTEXT", "127.0.0.1")
    answer = await handle_incremental_alter_configs(
        context, IncrementalAlterConfigsRequest(resources=[resource])
    )
    assert [each.error_code for each in answer.responses] == [0], answer


class Member:
    """A member with a session."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        self.topic_id = topic_id_of(broker)
        self.epoch = 0
        self.context = RequestContext(broker, "PLAINTEXT", "127.0.0.1")
        self.context.api_version = 2

    async def fetch(self, max_wait_ms: int = 0, **more: Any) -> Rows:
        """What is acquired."""
        topics = [share_fetch.FetchTopic(self.topic_id, [share_fetch.FetchPartition(0)])]
        fields: dict[str, Any] = {
            "group_id": "g",
            "member_id": self.name,
            "share_session_epoch": self.epoch,
            "max_wait_ms": max_wait_ms,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": topics if not self.epoch else [],
        }
        answer = await handle_share_fetch(self.context, share_fetch.ShareFetchRequest(**{**fields, **more}))
        assert answer.error_code == 0, answer
        self.epoch += 1
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for topic in answer.responses
            for row in topic.partitions
            for each in row.acquired_records
        ]

    async def acknowledge(self, first: int, last: int, kind: int) -> int:
        """The error of one acknowledgement."""
        batches = [share_acknowledge.AcknowledgementBatch(first, last, [kind])]
        rows = [share_acknowledge.AcknowledgePartition(0, batches)]
        request = share_acknowledge.ShareAcknowledgeRequest(
            "g",
            self.name,
            self.epoch,
            kind == RENEW,
            [share_acknowledge.AcknowledgeTopic(self.topic_id, rows)],
        )
        answer = await handle_share_acknowledge(self.context, request)
        assert answer.error_code == 0, answer
        self.epoch += 1
        return answer.responses[0].partitions[0].error_code


async def test_a_lock_runs_out(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    """After thirty seconds a member that waits gets the records, counted once more; the one before has lost them."""
    first, second = Member(broker, "a"), Member(broker, "b")
    append(broker, 4)
    start = trio.current_time()
    assert await first.fetch() == [(0, 3, 1)]
    assert await second.fetch(20_000) == []
    assert await second.fetch(60_000) == [(0, 3, 2)]
    assert trio.current_time() - start == pytest.approx(30)
    assert await first.acknowledge(0, 3, ACCEPT) == 121
    assert await second.acknowledge(0, 3, ACCEPT) == 0


async def test_a_lock_is_renewed(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    """From when it was asked for, for what was asked; the rest comes back in its time."""
    first, second = Member(broker, "a"), Member(broker, "b")
    append(broker, 4)
    start = trio.current_time()
    assert await first.fetch() == [(0, 3, 1)]
    await trio.sleep(20)
    assert await first.acknowledge(0, 1, RENEW) == 0
    assert await second.fetch(60_000) == [(2, 3, 2)]
    assert trio.current_time() - start == pytest.approx(30)
    assert await second.acknowledge(2, 3, ACCEPT) == 0
    assert await second.fetch(60_000) == [(0, 1, 2)]
    assert trio.current_time() - start == pytest.approx(50)


async def test_locks_do_not_depend_on_the_time_of_day(
    broker: Broker, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that is set an hour forward or back ends no lock and keeps none."""
    first, second = Member(broker, "a"), Member(broker, "b")
    append(broker, 1)
    start = trio.current_time()
    assert await first.fetch() == [(0, 0, 1)]
    now_ms = broker.now_ms()
    monkeypatch.setattr(type(broker), "now_ms", lambda _: now_ms + 3_600_000)
    assert await second.fetch(20_000) == []
    monkeypatch.setattr(type(broker), "now_ms", lambda _: now_ms - 3_600_000)
    assert await second.fetch(20_000) == [(0, 0, 2)]
    assert trio.current_time() - start == pytest.approx(30)


async def test_the_duration_of_a_group(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    """What a group says counts for its next locks."""
    first, second = Member(broker, "a"), Member(broker, "b")
    append(broker, 1)
    await configure(broker, record_lock_duration_ms="15000")
    start = trio.current_time()
    assert await first.fetch() == [(0, 0, 1)]
    assert await second.fetch(60_000) == [(0, 0, 2)]
    assert trio.current_time() - start == pytest.approx(15)


async def test_a_record_is_given_up(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    """After as many deliveries as the group allows, its lock runs out for the last time."""
    first, second = Member(broker, "a"), Member(broker, "b")
    append(broker, 1)
    await configure(broker, delivery_count_limit="3")
    for count in (1, 2, 3):
        member = (first, second)[count % 2]
        assert await member.fetch(60_000) == [(0, 0, count)]
    assert await first.fetch(60_000) == []
    kept = broker.share.states.summary(key_of(broker))
    assert kept is not None
    append(broker, 1)
    assert await second.fetch() == [(1, 1, 1)]
    assert broker.share.partitions.find_nowait(key_of(broker)).state.start_offset == 1


async def test_no_more_locks_than_the_group_allows(
    broker: Broker, autojump_clock: trio.testing.MockClock
) -> None:
    """When so many records are in flight, nothing new is given until the first of them are done."""
    member = Member(broker, "a")
    await configure(broker, partition_max_record_locks="100")
    for _ in range(30):
        append(broker, 5)
    assert await member.fetch() == [(0, 99, 1)]
    assert await member.fetch(1000) == []
    assert await member.acknowledge(50, 99, ACCEPT) == 0
    assert await member.fetch(1000) == []  # the first one holds its place
    assert await member.acknowledge(0, 9, ACCEPT) == 0
    assert await member.fetch(1000) == [(100, 109, 1)]


async def test_renewing_may_be_forbidden(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    """Then the lock is what it was."""
    first, second = Member(broker, "a"), Member(broker, "b")
    append(broker, 1)
    await configure(broker, renew_acknowledge_enable="false")
    start = trio.current_time()
    assert await first.fetch() == [(0, 0, 1)]
    await trio.sleep(20)
    assert await first.acknowledge(0, 0, RENEW) == 121
    assert await second.fetch(60_000) == [(0, 0, 2)]
    assert trio.current_time() - start == pytest.approx(30)
