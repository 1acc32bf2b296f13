"""Readers of committed records: how far they come, what they leave out, and when those who wait are woken."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from ottla.log_store.validation import AppendOrigin
from ottla.server.broker import Broker
from ottla.server.context import RequestContext
from ottla.server.handlers.fetch import handle_fetch
from ottla.server.handlers.list_offsets import handle_list_offsets
from ottla.server.transactions.markers import Marker, write_markers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.records import Record, build_batch, iter_batches

MAX_WAIT_MS = 60_000
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def context(broker: Broker) -> RequestContext:
    made = RequestContext(broker, "PLAINTEXT", "127.0.0.1")
    made.api_version = 11
    return made


def write(broker: Broker, producer_id: int = -1, count: int = 1, partition: int = 0) -> None:
    """Records of a transaction, or of nobody."""
    now_ms = broker.now_ms()
    batch = build_batch(
        [Record(number, now_ms, None, b"value") for number in range(count)],
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        is_transactional=producer_id >= 0,
    )
    broker.partitions.by_name("t", partition).append(
        memoryview(bytearray(batch)), now_ms, AppendOrigin.COORDINATOR
    )


async def end(broker: Broker, producer_id: int, committed: bool, *partitions: int) -> None:
    names = [("t", partition) for partition in partitions or (0,)]
    written = await write_markers(broker, Marker(producer_id, 0, 0, committed, 0), names)
    assert set(written.values()) == {ErrorCode.NONE}


def fetch(broker: Broker, isolation_level: int = READ_COMMITTED, offset: int = 0, **more: Any) -> Any:
    wanted = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000) for index in (0, 1)
    ]
    request = FetchRequest(
        **{"max_wait_ms": MAX_WAIT_MS, "min_bytes": 1, "max_bytes": 1 << 20, **more},
        isolation_level=isolation_level,
        topics=[FetchTopic(topic="t", partitions=wanted)],
    )
    return handle_fetch(context(broker), request)


def seen(data: PartitionData) -> tuple[list[int], list[tuple[int, int]]]:
    """The offsets of the batches, and the aborted transactions with them."""
    records = memoryview(bytes(data.records.read() if data.records else b""))  # type: ignore[union-attr]
    aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
    return [batch.base_offset for batch in iter_batches(records)], aborted


async def parked(
    broker: Broker, happen: Callable[[], Awaitable[None]], **more: Any
) -> tuple[list[PartitionData], float]:
    """What a Fetch that waits gets once this has happened, and how long it took."""
    answers: list[Any] = []

    async def wait() -> None:
        answers.append(await fetch(broker, **more))

    started = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await happen()
    (answer,) = answers
    return answer.responses[0].partitions, trio.current_time() - started


async def test_open_transaction(broker: Broker) -> None:
    """Others read all of it; readers of committed records stop before it, and what came later has to wait."""
    write(broker)
    write(broker, 7, 2)
    write(broker)
    (data, _) = fetch(broker).responses[0].partitions
    assert (data.high_watermark, data.last_stable_offset, *seen(data)) == (4, 1, [0], [])
    (data, _) = fetch(broker, READ_UNCOMMITTED).responses[0].partitions
    assert (data.high_watermark, data.last_stable_offset, *seen(data)) == (4, 1, [0, 1, 3], [])
    assert data.aborted_transactions is None


@pytest.mark.parametrize("committed", [True, False])
async def test_marker_wakes_who_waits(
    broker: Broker, autojump_clock: trio.testing.MockClock, committed: bool
) -> None:
    """The data and the aborted transactions are those of the moment of the answer (KAFKA-5376)."""

    async def transaction() -> None:
        write(broker, 7)
        write(broker, 8)
        await trio.sleep(1)
        await end(broker, 8, committed)  # behind the transaction that is open still
        await trio.sleep(1)
        await end(broker, 7, committed)

    (data, _), waited = await parked(broker, transaction)
    assert seen(data) == ([0, 1, 2, 3], [] if committed else [(8, 1), (7, 0)])
    assert data.last_stable_offset == data.high_watermark == 4
    assert waited == pytest.approx(2)


async def test_one_of_several_partitions(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    """A marker in one partition answers for all of them, each with its own last stable offset."""

    async def transaction() -> None:
        write(broker, 7, partition=0)
        write(broker, 7, partition=1)
        await end(broker, 7, False, 1)

    (first, second), waited = await parked(broker, transaction)
    assert (*seen(first), first.last_stable_offset) == ([], [], 0)
    assert (*seen(second), second.last_stable_offset) == ([0, 1], [(7, 0)], 2)
    assert waited == 0


async def test_appends_to_an_open_transaction_wake_nobody(
    broker: Broker, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing new for readers of committed records, so they are left alone until their time is up."""
    partition = broker.partitions.by_name("t", 0)
    write(broker, 7)
    reads = []
    read = type(partition.log).read
    monkeypatch.setattr(
        type(partition.log), "read", lambda log, *args, **more: reads.append(log) or read(log, *args, **more)
    )

    async def go_on() -> None:
        write(broker, 7)  # the first one finds out how far these readers are
        await trio.testing.wait_all_tasks_blocked()
        passes = len(reads)
        for _ in range(5):
            write(broker, 7)
            await trio.testing.wait_all_tasks_blocked()
        assert len(reads) == passes

    (data, _), waited = await parked(broker, go_on)
    assert seen(data) == ([], [])
    assert waited == pytest.approx(MAX_WAIT_MS / 1000)
    assert not partition.committed_waiters


async def test_stop_wakes_who_waits(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    """A broker that stops answers readers of committed records with what there is."""

    async def stop() -> None:
        broker.begin_stop()

    write(broker, 7)
    (data, _), waited = await parked(broker, stop)
    assert seen(data) == ([], [])
    assert waited == 0


async def test_min_bytes_count_committed_records(
    broker: Broker, autojump_clock: trio.testing.MockClock
) -> None:
    """Those of an open transaction do not make an answer."""

    async def transactions() -> None:
        write(broker, 7, 5)
        await trio.sleep(1)
        await end(broker, 7, True)
        write(broker, 8, 50)
        await trio.sleep(1)
        await end(broker, 8, True)

    (data, _), waited = await parked(broker, transactions, min_bytes=400)
    assert seen(data)[0] == [0, 5, 6, 56]
    assert waited == pytest.approx(2)


async def test_latest_offset(broker: Broker) -> None:
    """It is the last stable offset for readers of committed records."""
    write(broker)
    write(broker, 7)

    def latest(isolation_level: int) -> int:
        wanted = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name="t", partitions=wanted)],
        )
        (topic,) = handle_list_offsets(context(broker), request).topics
        return topic.partitions[0].offset

    assert (latest(READ_UNCOMMITTED), latest(READ_COMMITTED)) == (2, 1)
    await end(broker, 7, False)
    assert (latest(READ_UNCOMMITTED), latest(READ_COMMITTED)) == (3, 3)
