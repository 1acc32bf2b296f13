"""Requests of transactions that are answered at once, and those that have to wait all the same."""

from types import CoroutineType
from typing import Any

import pytest

from ottla.server.at_once import run_at_once
from ottla.server.broker import Broker
from ottla.server.context import RequestContext
from ottla.server.handlers.add_offsets_to_txn import handle_add_offsets_to_txn
from ottla.server.handlers.add_partitions_to_txn import handle_add_partitions_to_txn
from ottla.server.handlers.end_txn import handle_end_txn
from ottla.server.internal_topics import TRANSACTIONS_TOPIC
from ottla.server.transactions import endings
from ottla.txn_coordinator.decision import Answer
from ottla.txn_coordinator.state import COMPLETE_COMMIT, ONGOING, PREPARE_COMMIT
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.end_txn import EndTxnRequest
from tests.server.transactions.test_coordinator import ID, P0, Markers, begin, init, state, wait_for

VERSION = 3


def asked(broker: Broker) -> RequestContext:
    context = RequestContext(broker, "PLAINTEXT", "127.0.0.1")
    context.api_version = VERSION
    return context


def ended(broker: Broker, producer: Answer) -> Any:
    return handle_end_txn(asked(broker), EndTxnRequest(ID, *producer[1:], committed=True))


def added(broker: Broker, producer: Answer) -> Any:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic("t", [0, 1])],
    )
    return handle_add_partitions_to_txn(asked(broker), request)


async def test_a_whole_transaction(broker: Broker) -> None:
    """Where nothing asks for a flush, each answer is there when the handler returns."""
    producer = await init(broker)
    answer = added(broker, producer)
    assert [
        each.partition_error_code for each in answer.results_by_topic_v3_and_below[0].results_by_partition
    ] == [
        0,
        0,
    ]
    offsets = AddOffsetsToTxnRequest(ID, producer.producer_id, producer.producer_epoch, "group")
    assert handle_add_offsets_to_txn(asked(broker), offsets).error_code == 0
    assert state(broker) is ONGOING
    assert ended(broker, producer).error_code == 0
    assert state(broker) is COMPLETE_COMMIT


async def test_flushes_are_waited_for(broker: Broker) -> None:
    """A partition whose records are on the disk before they are acknowledged has its marker there, too; and so has the
    coordinator's own."""
    producer = await begin(broker, P0)
    log = broker.partitions.by_name(*P0).log
    log.flush_messages = 1
    waiting = ended(broker, producer)
    assert isinstance(waiting, CoroutineType)
    assert state(broker) is ONGOING
    assert (await waiting).error_code == 0
    assert log.recovery_point == log.log_end_offset == 1
    log = broker.partitions.by_name(TRANSACTIONS_TOPIC, 0).log
    log.flush_messages = 1
    waiting = added(broker, producer)
    assert isinstance(waiting, CoroutineType)
    await waiting
    assert log.recovery_point == log.log_end_offset
    assert (await ended(broker, producer)).error_code == 0
    assert log.recovery_point == log.log_end_offset


async def test_producer_ids_are_waited_for(broker: Broker) -> None:
    """An end may need a new one, so there must be one in stock."""
    producer = await begin(broker, P0)
    ids = broker.producer_ids
    while ids.take() is not None:
        pass
    waiting = ended(broker, producer)
    assert isinstance(waiting, CoroutineType)
    assert (await waiting).error_code == 0


async def test_an_end_that_goes_on_is_waited_for(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a Produce that adds its partition itself; AddPartitionsToTxn is refused at once."""
    markers = Markers(monkeypatch)
    markers.errors[P0] = ErrorCode.KAFKA_STORAGE_ERROR
    producer = await begin(broker, P0)
    assert broker.transactions.adds_at_once(ID)
    assert ended(broker, producer).error_code == 0
    assert state(broker) is PREPARE_COMMIT
    assert not broker.transactions.adds_at_once(ID)
    refused = added(broker, producer).results_by_topic_v3_and_below[0].results_by_partition
    assert {each.partition_error_code for each in refused} == {ErrorCode.CONCURRENT_TRANSACTIONS}
    markers.errors.clear()
    await wait_for(lambda: broker.transactions.adds_at_once(ID))


async def test_a_bug_amid_an_end(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection ends with it, but not the id: its end is carried out later."""
    markers = Markers(monkeypatch)
    producer = await begin(broker, P0)

    async def fail(*_: Any) -> Any:
        monkeypatch.setattr(endings, "write_markers", markers.write)
        raise ZeroDivisionError

    monkeypatch.setattr(endings, "write_markers", fail)
    with pytest.raises(ZeroDivisionError):
        ended(broker, producer)
    assert state(broker) is PREPARE_COMMIT
    await wait_for(lambda: state(broker) is COMPLETE_COMMIT)
    assert [each for _, each in markers.written] == [P0]


async def test_what_waits_although_it_must_not() -> None:
    """It is ended, and told as a bug."""
    seen = []

    class Wait:
        def __await__(self) -> Any:
            yield

    async def wait() -> None:
        try:
            await Wait()
        finally:
            seen.append("ended")

    with pytest.raises(RuntimeError, match="wants to wait"):
        run_at_once(wait())
    assert seen == ["ended"]
