"""TxnOffsetCommit: what the coordinator is asked, what is written, and what a restart in a transaction finds."""

from pathlib import Path
from typing import Any

import pytest
import trio

from ottla.server.broker import Broker
from ottla.server.context import RequestContext
from ottla.server.handlers.txn_offset_commit import handle_txn_offset_commit
from ottla.server.internal_topics import OFFSETS_TOPIC
from ottla.server.transactions.markers import write_marker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.records import iter_batches
from tests.server.transactions.conftest import Coordinator, open_broker

PRODUCER_ID = 7
NAME = (OFFSETS_TOPIC, 0)


async def commit(
    broker: Broker, offset: int = 5, *, version: int = 5, epoch: int = 0, group: str = "g", **more: Any
) -> dict[tuple[str, int], str]:
    context = RequestContext(broker, "PLAINTEXT", "127.0.0.1")
    context.api_version = version
    partitions = [TxnOffsetCommitRequestPartition(index, offset, committed_metadata="") for index in (0, 9)]
    topics = [TxnOffsetCommitRequestTopic(name, partitions) for name in ("t", "none")]
    request = TxnOffsetCommitRequest("tx", group, PRODUCER_ID, epoch, topics=topics, **more)
    answer = await handle_txn_offset_commit(context, request)
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code).name
        for topic in answer.topics
        for each in topic.partitions
    }


def answered(error: str) -> dict[tuple[str, int], str]:
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    return {("t", 9): unknown, ("t", 0): error, ("none", 0): unknown, ("none", 9): unknown}


def committed(broker: Broker) -> int | None:
    found = broker.groups.shard_of("g").offsets.get("g", "t", 0)
    return None if found is None else found.offset


@pytest.mark.parametrize(("version", "question"), [(0, "verify"), (3, "verify"), (4, "verify"), (5, "add")])
async def test_commit(broker: Broker, coordinator: Coordinator, version: int, question: str) -> None:
    """The coordinator is asked once in a transaction; the batch is the producer's; the marker makes it count."""
    assert await commit(broker, version=version) == answered("NONE")
    assert await commit(broker, 6, version=version) == answered("NONE")
    assert coordinator.asked == [(question, "tx", PRODUCER_ID, 0, (NAME,))]
    log = broker.partitions.by_name(*NAME).log
    found = log.read(0, 1 << 20, upto=log.log_end_offset, at_least_one=True).records
    assert found is not None
    assert [
        (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.is_transactional)
        for batch in iter_batches(memoryview(found.read()))
    ] == [(PRODUCER_ID, 0, -1, True)] * 2
    assert (committed(broker), log.last_stable_offset) == (None, 0)
    assert await write_marker(broker, *NAME, PRODUCER_ID, 0, 0, True, 0) is ErrorCode.NONE
    assert (committed(broker), log.last_stable_offset) == (6, 3)


@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        ("PRODUCER_FENCED", ["INVALID_PRODUCER_EPOCH"] * 3),
        ("INVALID_TXN_STATE", ["INVALID_TXN_STATE"] * 3),
        ("TRANSACTION_ABORTABLE", ["INVALID_TXN_STATE", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE"]),
        ("CONCURRENT_TRANSACTIONS", ["CONCURRENT_TRANSACTIONS"] * 3),
        (
            "COORDINATOR_LOAD_IN_PROGRESS",
            ["COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS"],
        ),
    ],
)
async def test_refusals(broker: Broker, coordinator: Coordinator, answer: str, heard: list[str]) -> None:
    """What the transaction's coordinator refuses is told for every partition, and nothing is written."""
    for version, expected in zip((1, 3, 5), heard, strict=True):
        coordinator.answers = [ErrorCode[answer]]
        assert await commit(broker, version=version) == answered(expected)
    assert broker.partitions.by_name(*NAME).log.log_end_offset == 0


async def test_group_refuses(broker: Broker, coordinator: Coordinator) -> None:
    """The group's own errors come after the coordinator's; a nameless group is never asked."""
    refused = await commit(broker, generation_id=3, member_id="m")
    assert refused == answered("ILLEGAL_GENERATION")
    assert len(coordinator.asked) == 1
    assert await commit(broker, group="") == answered("INVALID_GROUP_ID")
    assert len(coordinator.asked) == 1


async def test_fenced_by_the_log(broker: Broker, coordinator: Coordinator) -> None:
    """An older epoch, or a marker while the coordinator answers: nothing is written and the groups go on."""
    await commit(broker, epoch=3)
    assert await commit(broker, epoch=2) == answered("INVALID_PRODUCER_EPOCH")
    await write_marker(broker, *NAME, PRODUCER_ID, 3, 0, True, 0)

    async def abort() -> None:
        await write_marker(broker, *NAME, PRODUCER_ID, 3, 0, False, 0)

    coordinator.before_answer = abort
    assert await commit(broker, 9, epoch=3, version=4) == answered("INVALID_TXN_STATE")
    assert committed(broker) == 5


@pytest.mark.parametrize("commits", [True, False])
async def test_restart_in_a_transaction(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, commits: bool
) -> None:
    """Pending offsets are pending again, the transaction goes on, and its marker settles them."""
    monkeypatch.setattr(Broker, "transactions", Coordinator(), raising=False)
    first = await open_broker(tmp_path)
    assert await commit(first) == answered("NONE")
    await first.close()
    second = await open_broker(tmp_path)
    nursery.start_soon(second.late.run)
    while True:
        if await commit(second, 6) == answered("NONE"):
            break
        await trio.sleep(0.01)
    assert committed(second) is None
    assert await write_marker(second, *NAME, PRODUCER_ID, 0, 0, commits, 0) is ErrorCode.NONE
    assert committed(second) == (6 if commits else None)
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await second.close()
