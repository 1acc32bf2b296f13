"""The compiled reader and writer of a Fetch, and the broker that answers by them: the same bytes as the usual way."""

import random
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log_store.validation import AppendOrigin
from ottla.server.broker import Broker
from ottla.server.context import RequestContext
from ottla.server.dispatch import Dispatcher
from ottla.server.parked import ParkedAnswer
from ottla.server.partition_table import PartitionTable
from ottla.server.quick_answers import quick_answers
from ottla.server.quick_fetch import quick_fetch
from ottla.server.registry import Registration
from ottla.wire.api_keys import ApiKey
from ottla.wire.chunks import Chunk, FileSlice, join_chunks
from ottla.wire.errors import KafkaError, MalformedMessage
from ottla.wire.headers import decode_request_header
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from ottla.wire.records import Record, build_batch
from ottla.wire.records.control import ControlType, build_end_txn_marker
from ottla.wire.schema import decode
from tests.native.brokers import open_broker, prepare_all
from tests.native.test_requests import (
    OFFSETS,
    TOPIC_ID,
    client_ids,
    i32,
    request_frame,
    response_frame,
    topics,
)

FIRST, LAST = 4, 18
versions = st.integers(FIRST, LAST)
i64 = st.integers(-(2**63), 2**63 - 1)


def fetch_request(version: int, topic: str = "topic", **fields: Any) -> FetchRequest:
    """A consumer's, of one partition."""
    wanted = FetchPartition(partition=3, current_leader_epoch=2, fetch_offset=77, partition_max_bytes=1000)
    named = FetchTopic(topic if version < 13 else "", TOPIC_ID if version >= 13 else bytes(16), [wanted])
    usual = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 50_000, "topics": [named]}
    return FetchRequest(**{**usual, **fields})


@given(
    version=versions,
    topic=topics,
    correlation_id=i32,
    client_id=client_ids,
    numbers=st.tuples(i32, i32, i32, st.integers(0, 1), i32, i32),
    of_partition=st.tuples(i32, i32, i64, i64, i32),
    is_named=st.booleans(),
    rack=st.text("abc-12", max_size=5),
)
@settings(max_examples=300)
def test_an_ordinary_fetch_is_read(speed: ModuleType, **drawn: Any) -> None:
    """Every number of it."""
    version = drawn["version"]
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = drawn["numbers"]
    index, leader_epoch, offset, log_start_offset, partition_max_bytes = drawn["of_partition"]
    wanted = FetchPartition(
        partition=index,
        current_leader_epoch=leader_epoch,
        fetch_offset=offset,
        log_start_offset=log_start_offset,
        partition_max_bytes=partition_max_bytes,
    )
    name = drawn["topic"] if version < 13 else TOPIC_ID
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(drawn["topic"], TOPIC_ID, [wanted])] if drawn["is_named"] else [],
        rack_id=drawn["rack"],
    )
    frame = request_frame(request, version, drawn["correlation_id"], drawn["client_id"])
    found = speed.read_fetch(frame)
    session = (session_id, session_epoch) if version >= 7 else (0, -1)
    assert found[:8] == (
        version,
        drawn["correlation_id"],
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        *session,
    )
    if drawn["is_named"]:
        epoch = leader_epoch if version >= 9 else -1
        assert found[8:] == (name, index, epoch, offset, partition_max_bytes)
    else:
        assert found[8] is None
    for cut in range(len(frame)):
        assert speed.read_fetch(frame[:cut]) is None
    assert speed.read_fetch(frame + b"\0") is None
    assert speed.read_produce(frame) is None


@given(
    version=versions,
    damage=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=3),
)
@settings(max_examples=1000)
def test_what_it_reads_of_damaged_bytes_is_what_python_reads(
    speed: ModuleType, version: int, damage: list[tuple[int, int]]
) -> None:
    """It may give up where Python does not, never the other way round."""
    frame = bytearray(request_frame(fetch_request(version), version, 5, "me"))
    for place, byte in damage:
        frame[place % len(frame)] = byte
    found = speed.read_fetch(frame)
    try:
        header, position = decode_request_header(memoryview(frame))
        decoded = decode(FetchRequest, header.api_version, memoryview(frame)[position:])
    except (MalformedMessage, KafkaError, ValueError):
        assert found is None
        return
    if found is None:
        return
    assert header.api_key == ApiKey.FETCH
    assert (decoded.replica_id, decoded.replica_state.replica_id) == (-1, -1)
    assert decoded.forgotten_topics_data == []
    assert found[:8] == (
        header.api_version,
        header.correlation_id,
        decoded.max_wait_ms,
        decoded.min_bytes,
        decoded.max_bytes,
        decoded.isolation_level,
        decoded.session_id,
        decoded.session_epoch,
    )
    if not decoded.topics:
        assert found[8] is None
        return
    (named,) = decoded.topics
    (wanted,) = named.partitions
    assert wanted.last_fetched_epoch == -1
    assert found[8:] == (
        named.topic if header.api_version < 13 else named.topic_id,
        wanted.partition,
        wanted.current_leader_epoch,
        wanted.fetch_offset,
        wanted.partition_max_bytes,
    )


TWO = [FetchTopic("t", bytes(16), [FetchPartition(), FetchPartition()])]


@pytest.mark.parametrize(
    ("version", "request_"),
    [
        pytest.param(11, fetch_request(11, replica_id=1), id="a follower"),
        pytest.param(17, fetch_request(17, replica_state=ReplicaState(1, 1)), id="a follower of today"),
        pytest.param(11, fetch_request(11, isolation_level=2), id="isolation"),
        pytest.param(11, fetch_request(11, topics=TWO), id="two partitions"),
        pytest.param(11, fetch_request(11, topics=TWO * 2), id="two topics"),
        pytest.param(
            12,
            fetch_request(12, topics=[FetchTopic("t", bytes(16), [FetchPartition(last_fetched_epoch=1)])]),
            id="last fetched epoch",
        ),
        pytest.param(
            11, fetch_request(11, forgotten_topics_data=[ForgottenTopic("t", bytes(16), [1])]), id="forgotten"
        ),
        pytest.param(12, fetch_request(12, cluster_id="c"), id="cluster id"),
        pytest.param(11, fetch_request(11, topic="\u00fc"), id="topic in another script"),
        pytest.param(11, fetch_request(11, rack_id="\u00fc"), id="rack in another script"),
    ],
)
def test_what_is_not_ordinary_is_left_to_python(speed: ModuleType, version: int, request_: Any) -> None:
    """Neither read nor refused."""
    assert speed.read_fetch(request_frame(request_, version, 1, "me")) is None


@given(
    version=versions,
    correlation_id=i32,
    session_id=i32,
    topic=topics,
    index=i32,
    offsets=st.tuples(OFFSETS, OFFSETS, OFFSETS),
    isolation_level=st.integers(0, 1),
    records=st.binary(max_size=500),
    is_told=st.booleans(),
)
def test_the_answer_to_a_fetch(speed: ModuleType, tmp_path_factory: Any, **drawn: Any) -> None:
    """The same bytes as from the codec: with the records in it, or up to where they begin."""
    version, records, isolation_level = drawn["version"], drawn["records"], drawn["isolation_level"]
    high_watermark, stable_offset, start_offset = drawn["offsets"]
    row = PartitionData(
        partition_index=drawn["index"],
        high_watermark=high_watermark,
        last_stable_offset=stable_offset,
        log_start_offset=start_offset if version >= 5 else -1,
        aborted_transactions=[] if isolation_level else None,
        records=records,
    )
    named = drawn["topic"] if version < 13 else TOPIC_ID
    told = FetchableTopicResponse(drawn["topic"], TOPIC_ID, [row])
    response = FetchResponse(
        session_id=drawn["session_id"] if version >= 7 else 0, responses=[told] if drawn["is_told"] else []
    )
    expected = response_frame(response, version, drawn["correlation_id"])
    numbers = (
        version,
        drawn["correlation_id"],
        drawn["session_id"],
        named if drawn["is_told"] else None,
        drawn["index"],
        *drawn["offsets"],
        isolation_level,
        len(records) if drawn["is_told"] else 0,
    )
    path = tmp_path_factory.getbasetemp() / "records"
    path.write_bytes(b"before" + records)
    with path.open("rb") as file:
        assert speed.fetch_answer(*numbers, file.fileno(), 6) == expected
        if records and drawn["is_told"]:
            assert speed.fetch_answer(*numbers, file.fileno(), 7) is None
    head = speed.fetch_answer(*numbers, -1, 0)
    behind = b"" if version < 12 else b"\0\0\0"
    assert (head + records + behind if records and drawn["is_told"] else head) == expected


@pytest.mark.parametrize("topic", [b"short", "x" * 250, 5])
def test_an_answer_about_what_is_no_topic_is_refused(speed: ModuleType, topic: Any) -> None:
    """No byte is written outside the room for it."""
    with pytest.raises((ValueError, TypeError)):
        speed.fetch_answer(9, 1, 0, topic, 0, 0, 0, 0, 0, 0, -1, 0)


@pytest.mark.parametrize("size", [-1, 2**31, 2**63 - 1])
def test_an_answer_of_no_possible_size_is_refused(speed: ModuleType, size: int) -> None:
    """Nothing is allocated for it."""
    with pytest.raises(ValueError, match="fit"):
        speed.fetch_answer(9, 1, 0, "t", 0, 0, 0, 0, 0, size, -1, 0)
    with pytest.raises(ValueError, match="fit"):
        speed.fetch_answer(9, 1, 0, "t", 0, 0, 0, 0, 0, 2**27, 0, 0)


# ---- the broker


def test_it_is_quick_as_soon_as_the_code_is_there(speed: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start does not read it; the handler of the first Fetch does."""
    monkeypatch.setattr("ottla.server.quick_answers.speed", speed)
    frame = memoryview(b"\0\1\0\x0b and more")
    registration = Registration(ApiKey.FETCH)
    registry = {ApiKey.FETCH: registration}
    broker: Any = SimpleNamespace(partitions=PartitionTable(), now_ms=None, registry=registry)
    quick = quick_answers(broker, None)[ApiKey.FETCH]
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "ottla.server.quick_fetch")
        assert quick(frame, Answers()) is False  # type: ignore[arg-type]
        patch.setitem(sys.modules, "ottla.server.quick_fetch", ModuleType("being imported"))
        assert quick(frame, Answers()) is False  # type: ignore[arg-type]
    monkeypatch.setattr("ottla.server.quick_fetch.quick_fetch", lambda broker: lambda frame, outbox: True)
    assert quick(frame, Answers()) is False  # type: ignore[arg-type]
    registration.prepare(11)
    assert quick(frame[:7], Answers()) is False  # type: ignore[arg-type]
    assert quick(frame, Answers()) is True  # type: ignore[arg-type]


class Answers:
    """What would be sent."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.settle: Callable[[], None] | None = None
        self.failure: Exception | None = None

    def add_frame(self, chunks: list[Chunk]) -> None:
        body = join_chunks(chunks)
        self.frames.append(len(body).to_bytes(4, "big") + body)

    def add_bytes(self, frame: bytes) -> None:
        self.frames.append(frame)

    def add_chunks(self, chunks: list[Chunk]) -> None:
        assert any(isinstance(chunk, FileSlice) for chunk in chunks)
        self.frames.append(join_chunks(chunks))


class Side:
    """A broker that answers quickly, or in the usual way."""

    def __init__(self, broker: Broker, *, is_quick: bool) -> None:
        self.broker = broker
        self.quickly = 0
        context = RequestContext(broker, "PLAINTEXT", "127.0.0.1")
        prepare_all(broker.registry[ApiKey.FETCH])
        answer_quickly = quick_fetch(broker)

        def counted(frame: memoryview, outbox: Any) -> ParkedAnswer | bool:
            answer = answer_quickly(frame, outbox)
            self.quickly += bool(answer)
            return answer

        self._dispatcher = Dispatcher(broker.registry, context, {ApiKey.FETCH: counted} if is_quick else {})
        self.answers = Answers()
        self.parked: ParkedAnswer | None = None
        self.wakes = 0

    def send(self, frame: bytes) -> None:
        if self.parked is not None:
            self.parked.close()
        rest = self._dispatcher.answer(memoryview(frame), self.answers)  # type: ignore[arg-type]
        assert rest is None or isinstance(rest, ParkedAnswer)
        self.parked = rest
        if rest is not None:
            rest.watch(self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    def ask(self, time_is_up: bool) -> None:
        if self.parked is not None and self.parked.try_to_answer(self.answers, time_is_up=time_is_up):  # type: ignore[arg-type]
            self.parked.close()
            self.parked = None

    def append(self, partition: int, batch: bytes) -> None:
        log = self.broker.partitions.by_name("t", partition)
        log.append(memoryview(bytearray(batch)), 1, AppendOrigin.COORDINATOR)

    def seen(self) -> tuple[list[bytes], bool, float, int]:
        waits = self.parked is not None
        return self.answers.frames, waits, self.parked.max_wait_seconds if self.parked else 0, self.wakes


@pytest.fixture
async def sides(
    tmp_path: Path, speed: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Side, Side]]:
    """Two brokers with the same ids."""
    monkeypatch.setattr("ottla.server.quick_fetch.speed", speed)
    made = []
    for name in ("quick", "usual"):
        broker = await open_broker(tmp_path / name, 2)
        made.append(Side(broker, is_quick=name == "quick"))
    yield made[0], made[1]
    for side in made:
        await side.broker.close()


def random_batch(rng: random.Random, open_txns: set[int]) -> bytes:
    producer_id = rng.randrange(3)
    kind = rng.random()
    if producer_id in open_txns and kind < 0.3:
        open_txns.discard(producer_id)
        return build_end_txn_marker(
            rng.choice([ControlType.ABORT, ControlType.COMMIT]),
            timestamp=1,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
        )
    value = bytes(rng.choice([1, 100, 40_000]))
    if kind < 0.5:
        open_txns.add(producer_id)
        return build_batch(
            [Record(0, 1, None, value, ())],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=-1,
            is_transactional=True,
        )
    return build_batch([Record(0, 1, None, value, ())])


def random_fetch(rng: random.Random, side: Side, session: list[int]) -> bytes:
    version = rng.choice([4, 6, 8, 10, 11, 12, 13, 17, 18])
    log = side.broker.partitions.by_name("t", 0).log
    offset = rng.choice([0, log.log_end_offset, rng.randrange(log.log_end_offset + 2)])
    (topic_id,) = side.broker.partitions.indexes[1]
    wanted = FetchPartition(
        partition=rng.choice([0, 0, 0, 0, 0, 1, 9]),
        current_leader_epoch=rng.choice([-1, -1, -1, 0, 0, 5]),
        fetch_offset=offset,
        partition_max_bytes=rng.choice([0, 50, 1000, 1 << 20]),
    )
    if version >= 7 and rng.random() < 0.5:
        session_id, epoch = session
        if rng.random() < 0.2:
            session_id, epoch = 0, 0
    else:
        session_id, epoch = 0, -1
    is_named = epoch <= 0 or rng.random() < 0.7
    name = "t" if version < 13 else ""
    request = FetchRequest(
        max_wait_ms=rng.choice([0, 500]),
        min_bytes=rng.choice([0, 1, 1, 200, 100_000]),
        max_bytes=rng.choice([0, 100, 1 << 20, 2**31 - 1]),
        isolation_level=rng.randrange(2),
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(name, topic_id, [wanted])] if is_named else [],
    )
    return request_frame(request, version, rng.randrange(1000), "me")


@pytest.mark.parametrize("seed", range(8))
async def test_the_same_answers_as_the_usual_way(sides: tuple[Side, Side], seed: int) -> None:
    """Whatever is asked for, appended, waited for and given up, with sessions and without."""
    rng = random.Random(seed)
    quick, usual = sides
    open_txns: set[int] = set()
    session = [0, 0]
    for _ in range(400):
        kind = rng.random()
        if kind < 0.25:
            batch, partition = random_batch(rng, open_txns), rng.choice([0, 0, 0, 1])
            for side in sides:
                side.append(partition, batch)
        elif kind < 0.5:
            time_is_up = rng.random() < 0.3
            for side in sides:
                side.ask(time_is_up)
        else:
            frame = random_fetch(rng, usual, session)
            for side in sides:
                side.send(frame)
        assert quick.seen() == usual.seen()
        if usual.answers.frames:
            session = next_session(usual, session)
    assert quick.quickly > 50


def next_session(side: Side, session: list[int]) -> list[int]:
    """What a client would send next, going by what the broker has."""
    sessions = list(side.broker.fetch_sessions._sessions.values())
    return [sessions[-1].session_id, sessions[-1].epoch] if sessions else session


async def test_what_waits_for_a_topic_that_is_deleted(sides: tuple[Side, Side]) -> None:
    """It is told as usual."""
    request = fetch_request(
        11, "t", topics=[FetchTopic("t", bytes(16), [FetchPartition(partition_max_bytes=9)])]
    )
    frame = request_frame(request, 11, 1, "me")
    for side in sides:
        side.send(frame)
        assert side.parked is not None
        partition = side.broker.partitions.by_name("t", 0)
        del side.broker.partitions.indexes[0]["t"]
        partition.wake()
        side.ask(time_is_up=False)
        side.broker.partitions.indexes[0]["t"] = {0: partition}
    assert sides[0].seen() == sides[1].seen()
    assert sides[0].quickly == 1
    assert len(sides[0].answers.frames) == 1
