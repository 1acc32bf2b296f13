"""Transactional Produce: when the coordinator is asked, what it is asked, and what producers hear of its answer."""

import pytest
import trio
import trio.testing

from ottla.server.broker import Broker
from ottla.server.context import RequestContext
from ottla.server.handlers.produce import handle_produce
from ottla.server.transactions.markers import write_marker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from ottla.wire.records import Record, build_batch
from tests.server.transactions.conftest import Coordinator

PRODUCER_ID = 7
V1, ABORTABLE, V2 = 10, 11, 12


def transactional(sequence: int = 0, producer_id: int = PRODUCER_ID, epoch: int = 0, count: int = 1) -> bytes:
    return build_batch(
        [Record(number, 1, None, b"value") for number in range(count)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )


async def produce(
    broker: Broker, version: int, *batches: bytes, transactional_id: str | None = "tx"
) -> list[PartitionProduceResponse]:
    """Write a batch into each of the first partitions of `t`."""
    context = RequestContext(broker, "PLAINTEXT", "127.0.0.1")
    context.api_version = version
    data = [PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)]
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="t", partition_data=data)],
    )
    answer = handle_produce(context, request)
    if not hasattr(answer, "responses"):
        answer = await answer
    (topic,) = answer.responses
    return list(topic.partition_responses)


def codes(answers: list[PartitionProduceResponse]) -> list[ErrorCode]:
    return [ErrorCode(each.error_code) for each in answers]


@pytest.mark.parametrize("is_quick", [False, True])
@pytest.mark.parametrize(("version", "question"), [(V1, "verify"), (ABORTABLE, "verify"), (V2, "add")])
async def test_coordinator_is_asked_once(
    broker: Broker, coordinator: Coordinator, version: int, question: str, is_quick: bool
) -> None:
    """For all new partitions of a request together, and not for those that the transaction has written to."""
    coordinator.is_quick = is_quick
    assert codes(await produce(broker, version, transactional())) == [ErrorCode.NONE]
    answers = await produce(broker, version, transactional(1), transactional(), transactional())
    assert [(each.error_code, each.base_offset) for each in answers] == [(0, 1), (0, 0), (0, 0)]
    assert codes(await produce(broker, version, transactional(2), transactional(1))) == [ErrorCode.NONE] * 2
    assert coordinator.asked == [
        (question, "tx", PRODUCER_ID, 0, (("t", 0),)),
        (question, "tx", PRODUCER_ID, 0, (("t", 1), ("t", 2))),
    ]
    assert [broker.partitions.by_name("t", index).log.last_stable_offset for index in range(3)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        (ErrorCode.PRODUCER_FENCED, ["INVALID_PRODUCER_EPOCH"] * 3),
        (ErrorCode.INVALID_TXN_STATE, ["INVALID_TXN_STATE"] * 3),
        (
            ErrorCode.TRANSACTION_ABORTABLE,
            ["INVALID_TXN_STATE", "TRANSACTION_ABORTABLE", "TRANSACTION_ABORTABLE"],
        ),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ["NOT_ENOUGH_REPLICAS"] * 3),
        (ErrorCode.NOT_COORDINATOR, ["NOT_ENOUGH_REPLICAS"] * 3),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ["INVALID_PRODUCER_ID_MAPPING"] * 3),
    ],
)
@pytest.mark.parametrize("is_quick", [False, True])
async def test_refusals(
    broker: Broker, coordinator: Coordinator, answer: ErrorCode, heard: list[str], is_quick: bool
) -> None:
    """Errors that old clients would not understand are translated; nothing is written."""
    coordinator.is_quick = is_quick
    for version, expected in zip((V1, ABORTABLE, V2), heard, strict=True):
        coordinator.answers = [answer]
        assert codes(await produce(broker, version, transactional())) == [ErrorCode[expected]]
    assert broker.partitions.by_name("t", 0).log.log_end_offset == 0


async def test_end_of_the_last_transaction_is_waited_for(
    broker: Broker, coordinator: Coordinator, autojump_clock: trio.testing.MockClock
) -> None:
    """Every 20 ms for 100 ms where the broker adds partitions; other clients send again by themselves."""
    concurrent = ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator.answers = [concurrent, concurrent]
    assert codes(await produce(broker, V2, transactional())) == [ErrorCode.NONE]
    assert len(coordinator.asked) == 3
    coordinator.answers = [concurrent] * 100
    started = trio.current_time()
    assert codes(await produce(broker, V2, transactional(1), transactional())) == [ErrorCode.NONE, concurrent]
    assert trio.current_time() - started == pytest.approx(0.1)
    coordinator.answers = [concurrent]
    assert codes(await produce(broker, V1, b"", transactional())) == [
        ErrorCode.INVALID_RECORD,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    ]


async def test_marker_while_the_coordinator_answers(broker: Broker, coordinator: Coordinator) -> None:
    """The batch is too late: it would begin a transaction that nobody ends."""

    async def abort() -> None:
        await write_marker(broker, "t", 0, PRODUCER_ID, 0, 0, False, 0)

    coordinator.before_answer = abort
    assert codes(await produce(broker, V1, transactional())) == [ErrorCode.INVALID_TXN_STATE]
    log = broker.partitions.by_name("t", 0).log
    assert log.last_stable_offset == log.log_end_offset == 1


async def test_verification_turned_off(
    broker: Broker, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then clients of transactions V1 are trusted; V2 needs its partitions added all the same."""
    config = broker.logs.configs.broker
    monkeypatch.setattr(
        broker.logs.configs,
        "broker",
        config.with_properties({"transaction.partition.verification.enable": "false"}),
    )
    assert codes(await produce(broker, V1, transactional())) == [ErrorCode.NONE]
    assert coordinator.asked == []
    assert codes(await produce(broker, V2, transactional(1), transactional())) == [ErrorCode.NONE] * 2
    assert coordinator.asked == [("add", "tx", PRODUCER_ID, 0, (("t", 1),))]


async def test_requests_that_are_wrong_as_a_whole(broker: Broker, coordinator: Coordinator) -> None:
    """Two producers in one request, and a transactional batch without a transactional id."""
    answers = await produce(broker, V2, transactional(), transactional(epoch=1))
    assert codes(answers) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    answers = await produce(broker, V2, transactional(), transactional_id=None)
    assert codes(answers) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    assert coordinator.asked == []


async def test_large_batches(broker: Broker, coordinator: Coordinator) -> None:
    """Those that a worker thread opens are verified too."""
    large = build_batch(
        [Record(number, 1, None, bytes(range(200))) for number in range(2000)],
        codec=2,
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    coordinator.answers = [ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE]
    assert codes(await produce(broker, V2, large)) == [ErrorCode.INVALID_TXN_STATE]
    assert codes(await produce(broker, V2, large)) == [ErrorCode.NONE]
