"""Broken and hostile input against a running broker.

After each, another connection must be served as ever, memory must stay within bounds, the log must hold what was
acknowledged and nothing else, and the broker's own log must say in one line what happened.
"""

from __future__ import annotations

import logging
import resource
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker
from ottla.wire.api_keys import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.headers import decode_response_header
from ottla.wire.messages.api_versions import ApiVersionsResponse
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse
from ottla.wire.records import split_batches
from ottla.wire.schema import decode
from tests.server.bad_batches import (
    BAD_BATCHES,
    STRANGE_BATCHES,
    UNANSWERED_CORRUPT_BATCH,
    BadBatch,
    good_batch,
    negative_records_length,
    produce_request,
    records_length_beyond_the_frame,
)
from tests.server.bad_frames import (
    API_VERSIONS_ERROR,
    API_VERSIONS_OF_THE_FUTURE,
    BAD_INPUTS,
    CORRELATION_ID,
    MAX_FRAME_BYTES,
    TOPIC,
    BadInput,
    Fate,
    frame,
    header,
    request,
)

LATEST = -1
SLACK_BYTES = 48 * 1024 * 1024
_PEAK_RESET = Path("/proc/self/clear_refs")


class Client:
    """A connection that sends bytes and reads whole answers."""

    def __init__(self, broker: Broker) -> None:
        self.socket = socket.create_connection((broker.host, broker.port), timeout=30)
        self.stream = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> bytes | None:
        """The next answer without its length, or None when the broker has closed the connection."""
        try:
            size = self.stream.read(4)
            return self.stream.read(struct.unpack(">i", size)[0]) if len(size) == 4 else None
        except ConnectionError:
            return None

    def close(self) -> None:
        self.stream.close()
        self.socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def body_of(api_key: ApiKey, version: int, answer: bytes | None) -> bytes:
    assert answer is not None, "the broker closed the connection"
    correlation_id, position = decode_response_header(api_key, version, memoryview(answer))
    assert correlation_id == CORRELATION_ID
    return answer[position:]


class Witness:
    """A well-behaved client on connections of its own, who knows what the log must hold."""

    def __init__(self, broker: Broker, data: Path) -> None:
        self.broker = broker
        self.partition_dir = data / f"{TOPIC}-0"
        self.log_end_offset = 0

    def create_topic(self) -> None:
        topics = [MetadataRequestTopic(name=TOPIC)]
        for _ in range(100):
            with Client(self.broker) as client:
                client.send(request(MetadataRequest(topics=topics), 9))
                body = body_of(ApiKey.METADATA, 9, client.answer())
            [topic] = decode(MetadataResponse, 9, body).topics
            if topic.error_code == ErrorCode.NONE:
                return
        pytest.fail(f"topic is not there: {ErrorCode(topic.error_code).name}")

    def produce(self, records: bytes, client: Client | None = None) -> PartitionProduceResponse:
        with client or Client(self.broker) as connection:
            connection.send(produce_request(records))
            return partition_response(connection.answer())

    def latest_offset(self) -> int:
        partition = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        message = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=[partition])])
        with Client(self.broker) as client:
            client.send(request(message, 6))
            body = body_of(ApiKey.LIST_OFFSETS, 6, client.answer())
        return decode(ListOffsetsResponse, 6, body).topics[0].partitions[0].offset

    def log_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.partition_dir.glob("*.log"))

    def confirm(self) -> None:
        """Nothing was written, and a new record gets the next offset."""
        assert self.latest_offset() == self.log_end_offset
        before = self.log_bytes()
        batch = good_batch()
        response = self.produce(batch)
        assert (response.error_code, response.base_offset) == (ErrorCode.NONE, self.log_end_offset)
        assert self.log_bytes() == before + len(batch)
        self.log_end_offset += 1


def partition_response(answer: bytes | None, version: int = 9) -> PartitionProduceResponse:
    body = body_of(ApiKey.PRODUCE, version, answer)
    return decode(ProduceResponse, version, body).responses[0].partition_responses[0]


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    """A running broker, seen by a client who does nothing wrong."""
    data = tmp_path_factory.mktemp("bad-input")
    with Broker(data=data) as broker:
        witness = Witness(broker, data)
        witness.create_topic()
        witness.confirm()
        yield witness


class PeakMemory:
    """How much more memory the process has needed since, at its peak."""

    def __init__(self) -> None:
        self._can_reset = _PEAK_RESET.exists()
        if self._can_reset:
            _PEAK_RESET.write_text("5")
        self._before = self._peak_bytes()

    def growth(self) -> int:
        return self._peak_bytes() - self._before

    def _peak_bytes(self) -> int:
        if not self._can_reset:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        status = Path("/proc/self/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("bad", BAD_INPUTS, ids=lambda bad: bad.name)
def test_bad_frames(bad: BadInput, witness: Witness, caplog: pytest.LogCaptureFixture) -> None:
    """The one connection is closed with a line that says why; nobody else notices."""
    data = bad.make()
    memory = PeakMemory()
    with Client(witness.broker) as client:
        try:
            client.send(data)
        except ConnectionError:
            assert bad.fate is Fate.CLOSED
        if bad.fate is Fate.WAITS:
            witness.confirm()
            client.socket.shutdown(socket.SHUT_WR)
        assert client.answer() is None
    assert memory.growth() < 3 * len(data) + SLACK_BYTES
    if bad.fate is Fate.CLOSED:
        [complaint] = complaints(caplog)
        assert bad.log_says in complaint
    else:
        assert complaints(caplog) == []
    witness.confirm()


@pytest.mark.parametrize("bad", BAD_BATCHES, ids=lambda bad: bad.name)
def test_bad_batches(bad: BadBatch, witness: Witness, caplog: pytest.LogCaptureFixture) -> None:
    """The producer is told what is wrong on a connection that stays open, and nothing is written."""
    data = bad.request()
    memory = PeakMemory()
    with Client(witness.broker) as client:
        client.send(data)
        response = partition_response(client.answer(), bad.version)
        assert ErrorCode(response.error_code) == bad.code
        assert response.base_offset == -1
        assert witness.produce(good_batch(), client).base_offset == witness.log_end_offset
    witness.log_end_offset += 1
    assert memory.growth() < 3 * len(data) + SLACK_BYTES + bad.opened_bytes
    assert complaints(caplog) == []
    witness.confirm()


@pytest.mark.parametrize("strange", STRANGE_BATCHES, ids=lambda strange: strange.name)
def test_strange_batches(strange: BadBatch, witness: Witness) -> None:
    """What Kafka takes is taken, at no great cost, and counts as one record."""
    data = strange.request()
    memory = PeakMemory()
    with Client(witness.broker) as client:
        client.send(data)
        response = partition_response(client.answer(), strange.version)
    assert (response.error_code, response.base_offset) == (strange.code, witness.log_end_offset)
    witness.log_end_offset += 1
    assert memory.growth() < 3 * len(data) + SLACK_BYTES
    witness.confirm()


@pytest.mark.parametrize(
    "data",
    [negative_records_length(), records_length_beyond_the_frame(), UNANSWERED_CORRUPT_BATCH],
    ids=["negative records length", "records length beyond the frame", "corrupt crc with acks=0"],
)
def test_produce_that_ends_the_connection(
    data: bytes, witness: Witness, caplog: pytest.LogCaptureFixture
) -> None:
    """Where no answer is possible the connection is closed."""
    with Client(witness.broker) as client:
        client.send(data)
        assert client.answer() is None
    assert len(complaints(caplog)) == 1
    witness.confirm()


def test_api_versions_of_the_future(witness: Witness, caplog: pytest.LogCaptureFixture) -> None:
    """An unknown ApiVersions version is answered in version 0, and the connection goes on (KIP-511)."""
    with Client(witness.broker) as client:
        client.send(API_VERSIONS_OF_THE_FUTURE)
        response = decode(ApiVersionsResponse, 0, body_of(ApiKey.API_VERSIONS, 0, client.answer()))
        assert response.error_code == API_VERSIONS_ERROR
        assert [key.api_key for key in response.api_keys] == [ApiKey.API_VERSIONS]
        assert witness.produce(good_batch(), client).error_code == ErrorCode.NONE
    witness.log_end_offset += 1
    assert complaints(caplog) == []
    witness.confirm()


def test_requests_before_the_bad_one_are_answered(witness: Witness) -> None:
    """What came before a bad frame in the same packet was understood, so it is done and answered."""
    with Client(witness.broker) as client:
        client.send(produce_request(good_batch()) + produce_request(good_batch()) + frame(header(999, 0)))
        offsets = [partition_response(client.answer()).base_offset for _ in range(2)]
        assert offsets == [witness.log_end_offset, witness.log_end_offset + 1]
        assert client.answer() is None
    witness.log_end_offset += 2
    witness.confirm()


def test_many_who_announce_much_and_send_nothing(witness: Witness) -> None:
    """Announced bytes cost nothing: 60 connections with a frame of 100 MB each in prospect hold nobody up."""
    memory = PeakMemory()
    clients = [Client(witness.broker) for _ in range(60)]
    for client in clients:
        client.send(struct.pack(">i", MAX_FRAME_BYTES) + header(ApiKey.PRODUCE, 9))
    witness.confirm()
    response = witness.produce(good_batch(value=bytes(900_000)))
    assert (response.error_code, response.base_offset) == (ErrorCode.NONE, witness.log_end_offset)
    witness.log_end_offset += 1
    assert memory.growth() < SLACK_BYTES
    for client in clients:
        client.close()
    witness.confirm()


def test_the_log_holds_what_was_acknowledged_and_nothing_else(witness: Witness) -> None:
    """After all of this the files hold whole batches with right checksums, without a gap or a rest."""
    witness.confirm()
    offset = 0
    for path in sorted(witness.partition_dir.glob("*.log")):
        for view in split_batches(memoryview(path.read_bytes())):
            assert view.crc_matches()
            assert view.base_offset == offset
            offset = view.next_offset
    assert offset == witness.log_end_offset


def test_a_refusal_that_quotes_a_very_long_name_is_answered(witness: Witness) -> None:
    """The sentence is cut where the protocol has no room for it."""
    topic = CreatableTopic(name="x" * 32_760, num_partitions=1, replication_factor=1)
    with Client(witness.broker) as client:
        client.send(request(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7))
        body = body_of(ApiKey.CREATE_TOPICS, 7, client.answer())
    [result] = decode(CreateTopicsResponse, 7, body).topics
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message is not None
    assert result.error_message.endswith("xxx...")
