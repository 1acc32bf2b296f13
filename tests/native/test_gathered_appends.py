"""Batches of many clients that are written together: the answers and logs of a broker that takes each by itself."""

import errno
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ottla.log_store.batch_run import append_run
from ottla.server.broker import Broker
from ottla.server.context import RequestContext
from ottla.server.dispatch import CloseConnection, Dispatcher
from ottla.server.quick_answers import quick_answers
from ottla.wire.api_keys import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records import Record, build_batch
from ottla.wire.schema import decode
from tests.native.brokers import open_broker, prepare_all
from tests.native.test_fetch import Answers
from tests.native.test_requests import request_frame
from tests.server.circles import garbage_in_circles

CLIENTS, PARTITIONS, NOW_MS = 4, 4, 1_700_000_000_000


class Crowd:
    """Stands for ReadyClients while it serves several clients."""

    def __init__(self) -> None:
        self.is_crowded = True
        self._at_end: list[Callable[[], None]] = []
        self.told_first = 0

    def call_at_end(self, function: Callable[[], None]) -> None:
        self._at_end.append(function)

    def call_first(self) -> None:
        self.told_first += 1

    def end_pass(self) -> None:
        at_end, self._at_end = self._at_end, []
        for function in at_end:
            function()


class Side:
    """A broker with some clients, each with a connection of its own."""

    def __init__(self, broker: Broker, *, gathers: bool) -> None:
        self.broker = broker
        self.crowd: Any = Crowd()
        for api_key in (ApiKey.PRODUCE, ApiKey.LIST_OFFSETS):
            prepare_all(broker.registry[api_key])
        quick = quick_answers(broker, self.crowd) if gathers else {}
        context = RequestContext(broker, "PLAINTEXT", "127.0.0.1")
        self.dispatchers = [Dispatcher(broker.registry, context, quick) for _ in range(CLIENTS)]
        self.outboxes: list[Any] = [Answers() for _ in range(CLIENTS)]

    def send(self, client: int, frame: bytes) -> None:
        rest = self.dispatchers[client].answer(memoryview(bytearray(frame)), self.outboxes[client])
        assert rest is None

    def answers(self) -> list[list[bytes]]:
        return [outbox.frames for outbox in self.outboxes]

    def logs(self) -> list[tuple[bytes, int, int]]:
        logs = [self.broker.partitions.by_name("t", index).log for index in range(PARTITIONS)]
        return [
            (
                b"".join(Path(s.file.path).read_bytes() for s in log.segments),
                log.log_end_offset,
                log.high_watermark,
            )
            for log in logs
        ]


@pytest.fixture
async def sides(
    tmp_path: Path, speed: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Side, Side]]:
    """Two brokers with the same ids."""
    monkeypatch.setattr("ottla.server.quick_answers.speed", speed)
    made = []
    for name in ("gathers", "usual"):
        broker = await open_broker(tmp_path / name, PARTITIONS)
        monkeypatch.setattr(broker, "now_ms", lambda: NOW_MS)
        made.append(Side(broker, gathers=name == "gathers"))
    yield made[0], made[1]
    for side in made:
        await side.broker.close()


def produce(
    topic_id: bytes, version: int, batch: bytes, partition: int = 0, correlation_id: int = 1, acks: int = -1
) -> bytes:
    name = "t" if version < 13 else ""
    data = TopicProduceData(name, topic_id, [PartitionProduceData(partition, batch)])
    request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data])
    return request_frame(request, version, correlation_id, "me")


def plain_batch(value: bytes = b"value", **header: Any) -> bytes:
    return build_batch([Record(0, NOW_MS, None, value, ())], **header)


def random_batch(
    rng: random.Random, client: int, partition: int, sequences: dict[tuple[int, int], int]
) -> bytes:
    """A small one, of a producer, which sometimes sends it again, or of nobody."""
    value = bytes(rng.choice([1, 10, 100]))
    if rng.random() < 0.5:
        return plain_batch(value)
    sequence = sequences.get((client, partition), 0)
    if rng.random() < 0.9:
        sequences[client, partition] = sequence + 1
    return plain_batch(value, producer_id=client, producer_epoch=0, base_sequence=sequence)


def random_frame(rng: random.Random, topic_id: bytes, batch: bytes, partition: int) -> bytes:
    """The batch, or something else: one that is large or damaged, an unknown partition, another request."""
    correlation_id, version = rng.randrange(1000), rng.choice([3, 5, 8, 9, 12, 13])
    kind = rng.random()
    if kind < 0.1:
        wanted = ListOffsetsTopic("t", [ListOffsetsPartition(partition, -1, -1)])
        return request_frame(ListOffsetsRequest(-1, 0, [wanted]), 5, correlation_id, "me")
    if kind < 0.2:
        batch = plain_batch(bytes(5000))
    if 0.17 < kind < 0.25:
        batch = batch[:-1] + bytes([batch[-1] ^ 1])
    elif 0.25 <= kind < 0.3:
        partition = 9
    return produce(topic_id, version, batch, partition, correlation_id, rng.choice([1, -1]))


def same_in_the_end(gathers: Side, usual: Side) -> None:
    assert gathers.answers() == usual.answers()
    assert gathers.logs() == usual.logs()
    assert all(outbox.settle is None for outbox in gathers.outboxes)
    assert gathers.crowd.told_first > 10


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_a_client_asks_for(sides: tuple[Side, Side], seed: int) -> None:
    """Each writes to a partition of its own, alone or among others, and gets its answers in the order of its
    requests."""
    rng = random.Random(seed)
    (topic_id,) = sides[1].broker.partitions.indexes[1]
    sequences: dict[tuple[int, int], int] = {}
    for _ in range(60):
        sides[0].crowd.is_crowded = rng.random() < 0.7
        for _ in range(rng.randrange(1, 25)):
            client = rng.randrange(CLIENTS)
            batch = random_batch(rng, client, client, sequences)
            frame = random_frame(rng, topic_id, batch, client)
            for side in sides:
                side.send(client, frame)
        for side in sides:
            side.crowd.end_pass()
    same_in_the_end(*sides)


@pytest.mark.parametrize("seed", range(8))
async def test_all_clients_write_to_the_same_partitions(sides: tuple[Side, Side], seed: int) -> None:
    """What is gathered is appended in the order in which it came."""
    rng = random.Random(seed)
    (topic_id,) = sides[1].broker.partitions.indexes[1]
    sequences: dict[tuple[int, int], int] = {}
    for _ in range(60):
        for _ in range(rng.randrange(1, 25)):
            client, partition = rng.randrange(CLIENTS), rng.randrange(PARTITIONS)
            batch = random_batch(rng, client, partition, sequences)
            frame = produce(topic_id, rng.choice([3, 9, 13]), batch, partition, rng.randrange(1000))
            for side in sides:
                side.send(client, frame)
        for side in sides:
            side.crowd.end_pass()
    same_in_the_end(*sides)


@pytest.mark.parametrize("clients", [1, CLIENTS])
async def test_batches_that_are_refused_make_no_garbage_in_circles(
    sides: tuple[Side, Side], clients: int
) -> None:
    """An error leads to all that was gathered with it."""
    side = sides[0]
    (topic_id,) = side.broker.partitions.indexes[1]
    frames = [
        produce(topic_id, 9, plain_batch(producer_id=1, producer_epoch=0, base_sequence=sequence))
        for sequence in (0, 7)
    ]
    side.send(0, frames[0])
    side.crowd.end_pass()
    with garbage_in_circles() as names:
        for client in range(clients):
            side.send(client, frames[1])
        side.crowd.end_pass()
    answer = side.outboxes[0].frames[-1]
    (refused,) = decode(ProduceResponse, 9, answer[9:]).responses[0].partition_responses
    assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert names == set()


async def test_a_disk_that_refuses(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request is told so, in the words of the usual way, and other partitions take what is theirs."""
    gathers, usual = sides
    (topic_id,) = usual.broker.partitions.indexes[1]

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    for side in sides:
        for partition in range(2):
            side.send(0, produce(topic_id, 9, plain_batch(), partition))
        side.crowd.end_pass()
        log = side.broker.partitions.by_name("t", 0).log
        monkeypatch.setattr(log, "on_failure", lambda error: None)
        with monkeypatch.context() as patch:
            patch.setattr("ottla.log_store.files.LogFile.append", refuse)
            for client in range(2):
                for version in (3, 8, 9, 13):
                    side.send(client, produce(topic_id, version, plain_batch()))
            side.crowd.end_pass()
        side.send(1, produce(topic_id, 13, plain_batch(), 1))
        side.crowd.end_pass()
    assert gathers.answers() == usual.answers()
    assert gathers.logs() == usual.logs()
    refused = decode(ProduceResponse, 9, gathers.answers()[0][4][4 + 4 + 1 :])
    assert refused.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_bug_of_ours_ends_its_connections_and_harms_no_other_partition(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who cannot be answered is sent away, after the answers before, so that nobody waits for one in vain."""
    gathers, usual = sides
    (topic_id,) = usual.broker.partitions.indexes[1]
    for partition in range(2):
        gathers.send(partition, produce(topic_id, 9, plain_batch(), partition))
    gathers.crowd.end_pass()
    broken = gathers.broker.partitions.by_name("t", 0).log
    monkeypatch.setattr(
        "ottla.server.partition.append_run",
        lambda log, *rest: append_run(log, *rest) if log is not broken else 1 / 0,
    )
    for partition in range(2):
        gathers.send(partition, produce(topic_id, 9, plain_batch(), partition))
    gathers.send(1, produce(topic_id, 9, plain_batch(), 0))
    gathers.send(1, produce(topic_id, 9, plain_batch(), 1))
    gathers.crowd.end_pass()
    assert [len(frames) for frames in gathers.answers()] == [1, 2, 0, 0]
    assert [type(outbox.failure) for outbox in gathers.outboxes[:3]] == [
        CloseConnection,
        CloseConnection,
        type(None),
    ]
    assert "append failed partition=t-0" in caplog.text
    assert gathers.broker.partitions.by_name("t", 1).log.log_end_offset == 3


async def test_a_bug_with_one_batch_of_a_run(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of its run are answered."""
    gathers, usual = sides
    (topic_id,) = usual.broker.partitions.indexes[1]
    partition = gathers.broker.partitions.by_name("t", 0)
    append = partition.log.append_prepared
    monkeypatch.setattr("ottla.server.partition.append_run", lambda *_: None)
    monkeypatch.setattr(
        partition.log,
        "append_prepared",
        lambda batch, *rest: append(batch, *rest) if len(batch.buf) < 100 else 1 / 0,
    )
    for client, size in enumerate((1, 1000, 1)):
        gathers.send(client, produce(topic_id, 9, plain_batch(bytes(size))))
    gathers.crowd.end_pass()
    assert [len(frames) for frames in gathers.answers()] == [1, 0, 1, 0]
    assert [outbox.failure is None for outbox in gathers.outboxes] == [True, False, True, True]


async def test_very_many_bytes_are_written_before_the_end(sides: tuple[Side, Side]) -> None:
    """Memory is bounded, however much the clients of a pass send."""
    gathers, usual = sides
    (topic_id,) = usual.broker.partitions.indexes[1]
    for _ in range(100):
        gathers.send(0, produce(topic_id, 9, plain_batch(bytes(3900))))
    assert 50 < len(gathers.answers()[0]) < 100
    gathers.crowd.end_pass()
    assert len(gathers.answers()[0]) == 100


async def test_nothing_is_gathered_for_a_single_client(sides: tuple[Side, Side]) -> None:
    """It is answered at once."""
    gathers, usual = sides
    (topic_id,) = usual.broker.partitions.indexes[1]
    gathers.crowd.is_crowded = False
    gathers.send(0, produce(topic_id, 9, plain_batch()))
    assert len(gathers.answers()[0]) == 1
