"""The coordinator's service: loading, markers that wait, topics that vanish, disks that fail, clients that go."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import trio

from ottla.log_store.validation import AppendOrigin
from ottla.metadata.controller.delete_topics import plan_delete_topics
from ottla.metadata.features import TRANSACTION_VERSION
from ottla.server.broker import Broker
from ottla.server.internal_topics import TRANSACTIONS_TOPIC
from ottla.server.topic_creation import create_missing_topics, create_topics
from ottla.server.transactions import coordinator, endings
from ottla.server.transactions.loaded import LoadedShard
from ottla.server.transactions.loading import TransactionLoader
from ottla.server.transactions.markers import Marker
from ottla.txn_coordinator.decision import Answer
from ottla.txn_coordinator.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    TransactionState,
)
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.records import Record, build_batch, iter_batches, iter_records
from tests.server.transactions.conftest import open_broker

ID = "app"
P0, P1 = ("t", 0), ("t", 1)
NONE = ErrorCode.NONE


async def init(broker: Broker, transactional_id: str = ID, timeout_ms: int = 60_000) -> Answer:
    await create_missing_topics(broker, [TRANSACTIONS_TOPIC])
    return await broker.transactions.init_producer_id(transactional_id, timeout_ms, -1, -1)


async def begin(broker: Broker, *partitions: tuple[str, int]) -> Answer:
    """A producer with an open transaction."""
    producer = await init(broker)
    added = await broker.transactions.add_partitions(ID, *producer[1:], partitions or (P0, P1))
    assert set(added.values()) == {NONE}
    return producer


async def end(broker: Broker, producer: Answer, *, committed: bool = True) -> Answer:
    return await broker.transactions.end(ID, *producer[1:], committed=committed, client_version=2)


def state(broker: Broker) -> TransactionState:
    return broker.transactions.transaction(ID).state


async def wait_for(is_so: Callable[[], bool]) -> None:
    with trio.fail_after(10):
        while not is_so():
            await trio.sleep(0.01)


class Markers:
    """Stands for `write_markers`: answers with the errors it is told, partition by partition."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.errors: dict[tuple[str, int], ErrorCode] = {}
        self.written: list[tuple[Marker, tuple[str, int]]] = []
        monkeypatch.setattr(endings, "write_markers", self.write)

    async def write(
        self, broker: Broker, marker: Marker, partitions: Iterable[tuple[str, int]]
    ) -> dict[tuple[str, int], ErrorCode]:
        answers = {each: self.errors.get(each, NONE) for each in partitions}
        self.written += [(marker, each) for each, error in answers.items() if error is NONE]
        return answers


async def test_markers_that_have_to_wait(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The producer is answered, since the commit is decided; others wait; the marker comes when the partition does."""
    markers = Markers(monkeypatch)
    markers.errors[P1] = ErrorCode.KAFKA_STORAGE_ERROR
    producer = await begin(broker)
    answer = await end(broker, producer)
    assert answer == (NONE, producer.producer_id, 1)
    assert state(broker) is PREPARE_COMMIT
    assert broker.transactions.transaction(ID).partitions == {P1}
    assert (await init(broker)).error is ErrorCode.CONCURRENT_TRANSACTIONS
    added = await broker.transactions.add_partitions(ID, *answer[1:], [P0])
    assert added == {P0: ErrorCode.CONCURRENT_TRANSACTIONS}
    markers.errors.clear()
    await wait_for(lambda: state(broker) is COMPLETE_COMMIT)
    assert [each for _, each in markers.written] == [P0, P1]
    (marker,) = {marker for marker, _ in markers.written}
    assert marker == Marker(producer.producer_id, 1, 0, True, 2)


@pytest.mark.parametrize(
    "error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
)
async def test_partitions_where_the_transaction_is_over(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, error: ErrorCode
) -> None:
    """A partition that has seen a later epoch needs no marker, and does not keep the id from going on."""
    markers = Markers(monkeypatch)
    markers.errors[P0] = error
    await end(broker, await begin(broker))
    assert state(broker) is COMPLETE_COMMIT


@pytest.mark.parametrize("is_made_anew", [False, True])
async def test_partitions_that_are_deleted(broker: Broker, is_made_anew: bool) -> None:
    """Their transaction ends without them, also if there is a topic of that name again, with fewer partitions."""
    producer = await begin(broker)
    await delete(broker, "t")
    if is_made_anew:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        await create_topics(broker, CreateTopicsRequest(topics=[topic]))
    await end(broker, producer, committed=False)
    assert state(broker) is COMPLETE_ABORT


async def delete(broker: Broker, name: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
    await broker.decide(lambda image: plan_delete_topics(image, request, config=broker.config, api_version=6))


async def test_their_topic_is_deleted(broker: Broker) -> None:
    """Nobody coordinates until the topic is made again, and then all ids are new."""
    producer = await begin(broker)
    await delete(broker, TRANSACTIONS_TOPIC)
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await end(broker, producer)
    again = await init(broker)
    assert (again.producer_id, again.producer_epoch) == (producer.producer_id + 1, 0)


async def test_loading(tmp_path: Path, nursery: trio.Nursery) -> None:
    """Until the log is read nobody is told anything; then the ids are there, but for records nobody understands."""
    broker = await open_broker(tmp_path)
    producer = await begin(broker)
    foreign = build_batch([Record(0, 1, b"\0\7key", b"value"), Record(1, 1, b"\0\0\0\3bad", b"\0\1")])
    partition = broker.partitions.by_name(TRANSACTIONS_TOPIC, 0)
    partition.append(memoryview(bytearray(foreign)), 1, AppendOrigin.COORDINATOR)
    await broker.close()
    broker = await open_broker(tmp_path)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with pytest.raises(KafkaError, match=loading.name):
        broker.transactions.transactions()
    with pytest.raises(KafkaError, match=loading.name):
        await end(broker, producer)
    assert await broker.transactions.verify(ID, *producer[1:], [P0]) == {P0: loading}
    assert await broker.transactions.add_partitions(ID, *producer[1:], [P0]) == {P0: loading}
    nursery.start_soon(broker.late.run)
    await wait_for(lambda: not broker.transactions._loading)
    assert [each.transactional_id for each in broker.transactions.transactions()] == [ID]
    assert (await broker.transactions.verify(ID, *producer[1:], [P0]))[P0] is NONE
    assert (await end(broker, producer)).error is NONE
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await broker.close()


async def test_a_log_that_cannot_be_read_at_first(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ids have no coordinator, and are loaded again after a while."""
    broker = await open_broker(tmp_path)
    producer = await begin(broker)
    await broker.close()
    broker = await open_broker(tmp_path)
    load = TransactionLoader.load_slice

    def fail_once(self: TransactionLoader) -> None:
        monkeypatch.setattr(TransactionLoader, "load_slice", load)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    monkeypatch.setattr(TransactionLoader, "load_slice", fail_once)
    monkeypatch.setattr(coordinator, "_FIRST_RETRY_SECONDS", 0)
    nursery.start_soon(broker.late.run)
    await wait_for(lambda: bool(broker.transactions._loaded))
    assert (await end(broker, producer)).error is NONE
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await broker.close()


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_appends_that_fail(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, failure: ErrorCode, told: ErrorCode
) -> None:
    """The client hears what it can act on, and nothing has changed."""
    producer = await begin(broker, P0)

    def fail(*_: Any) -> Any:
        raise KafkaError(failure)

    partition = broker.partitions.by_name(TRANSACTIONS_TOPIC, 0)
    with monkeypatch.context() as patched:
        patched.setattr(type(partition), "append", fail)
        with pytest.raises(KafkaError, match=told.name):
            await end(broker, producer)
        assert await broker.transactions.add_partitions(ID, *producer[1:], [P1]) == {P1: told}
    assert state(broker) is ONGOING
    assert (await end(broker, producer)).error is NONE
    assert state(broker) is COMPLETE_COMMIT


async def test_a_client_that_hangs_up(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction is ended all the same."""
    producer = await begin(broker)
    write = LoadedShard.write

    async def write_slowly(self: LoadedShard, *args: Any) -> None:
        await write(self, *args)
        await trio.sleep(0.01)

    monkeypatch.setattr(LoadedShard, "write", write_slowly)
    with trio.CancelScope() as scope:
        scope.cancel()
        await end(broker, producer)
    assert scope.cancelled_caught or state(broker) is COMPLETE_COMMIT
    assert state(broker) is COMPLETE_COMMIT


async def test_stopping(broker: Broker) -> None:
    """Clients look for another coordinator."""
    producer = await begin(broker)
    broker.begin_stop()
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        await end(broker, producer)
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        broker.transactions.transactions()


@pytest.mark.parametrize(("level", "version", "epoch"), [(0, 0, 0), (1, 1, 1), (2, 1, 1)])
async def test_a_directory_of_another_level(broker: Broker, level: int, version: int, epoch: int) -> None:
    """Where transaction.version is lower, records are as that level has them."""
    broker.image.features[TRANSACTION_VERSION] = level
    await end(broker, await begin(broker))
    assert broker.transactions.transaction(ID).producer_epoch == epoch
    log = broker.partitions.by_name(TRANSACTIONS_TOPIC, 0).log
    found = log.read(0, 1 << 20, upto=log.log_end_offset, at_least_one=True).records
    assert found is not None
    records = [record for batch in iter_batches(memoryview(found.read())) for record in iter_records(batch)]
    assert {bytes(record.value[:2]) for record in records if record.value} == {bytes([0, version])}
    assert len(records) == 4  # who the producer is, its partitions, the decision, and that all is done


async def test_an_id_is_ready_at_once(broker: Broker) -> None:
    """A new topic has nothing to load."""
    assert (await init(broker))[2] == 0
    assert state(broker) is EMPTY


async def test_one_task_ends_a_transaction(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer that wants the id while its transaction ends is told to come again, and writes no markers."""
    written = []
    may_go_on = trio.Event()

    async def write_slowly(
        _: Broker, marker: Marker, partitions: Iterable[tuple[str, int]]
    ) -> dict[tuple[str, int], ErrorCode]:
        written.append(list(partitions))
        await may_go_on.wait()
        return dict.fromkeys(written[-1], NONE)

    producer = await begin(broker)
    monkeypatch.setattr(endings, "write_markers", write_slowly)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: end(broker, producer))
        await wait_for(lambda: bool(written))
        assert (await init(broker)).error is ErrorCode.CONCURRENT_TRANSACTIONS
        may_go_on.set()
    assert written == [[P0, P1]]
    assert state(broker) is COMPLETE_COMMIT
