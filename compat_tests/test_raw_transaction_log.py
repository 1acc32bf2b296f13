"""Transactions in a partition's log, request by request: what readers see, what producers are refused, and markers."""

from typing import Any

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic
from compat_tests.raw_transactions import RawProducer
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ottla.wire.records import Record, build_batch, iter_batches
from ottla.wire.records.control import control_type_of, coordinator_epoch_of
from ottla.wire.records.records import iter_records

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
ABORT, COMMIT = False, True


@pytest.fixture
def topic(raw: RawClient, topic_name: str) -> tuple[str, bytes]:
    """A topic of two partitions: its name, which is also the transactional id, and its id."""
    return topic_name, create_topic(raw, topic_name, 2, retention_ms="-1")


@pytest.fixture
def producer(raw: RawClient, topic: tuple[str, bytes]) -> RawProducer:
    """A producer of transactions V2."""
    made = RawProducer(raw, topic[0])
    assert made.init() == ErrorCode.NONE
    return made


def end(producer: RawProducer, committed: bool) -> None:
    """End the transaction and wait for its markers: Kafka answers before they are written."""
    assert producer.end(committed) == ErrorCode.NONE
    eventually(producer.state, "CompleteCommit" if committed else "CompleteAbort")


def fetch(
    raw: RawClient, topic: tuple[str, bytes], isolation: int, version: int = 11, offset: int = 0
) -> Any:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=isolation,
        topics=[FetchTopic(topic=topic[0], topic_id=topic[1], partitions=[wanted])],
    )
    (answered,) = raw.send(request, version).responses
    (data,) = answered.partitions
    return data


def told(data: Any, producer: RawProducer) -> dict[str, Any]:
    """What a Fetch says of a partition; the producer's id is not the same on both brokers."""
    aborted = data.aborted_transactions
    return {
        "batches": [
            (batch.base_offset, batch.records_count, batch.is_transactional, batch.is_control)
            for batch in iter_batches(memoryview(bytes(data.records or b"")))
        ],
        "high_watermark": data.high_watermark,
        "last_stable_offset": data.last_stable_offset,
        "aborted": None
        if aborted is None
        else [(each.producer_id - producer.producer_id, each.first_offset) for each in aborted],
    }


@pytest.mark.parametrize("version", range(FetchRequest.MIN_VERSION, FetchRequest.MAX_VERSION + 1))
def test_fetch(raw: RawClient, topic: tuple[str, bytes], producer: RawProducer, version: int) -> None:
    """Readers of committed records stop at an open transaction and are told of aborted ones."""
    name, _ = topic
    assert producer.produce(name, 0, b"a", b"b") == ErrorCode.NONE
    end(producer, ABORT)
    assert producer.produce(name, 0, b"c") == ErrorCode.NONE
    aborted = [(0, 2, True, False), (2, 1, True, True)]
    assert told(fetch(raw, topic, READ_COMMITTED, version), producer) == {
        "batches": aborted,
        "high_watermark": 4,
        "last_stable_offset": 3,
        "aborted": [(0, 0)],
    }
    assert told(fetch(raw, topic, READ_UNCOMMITTED, version), producer) == {
        "batches": [*aborted, (3, 1, True, False)],
        "high_watermark": 4,
        "last_stable_offset": 3,
        "aborted": None,
    }
    assert told(fetch(raw, topic, READ_COMMITTED, version, 3), producer) == {
        "batches": [],
        "high_watermark": 4,
        "last_stable_offset": 3,
        "aborted": [],
    }
    end(producer, COMMIT)
    assert told(fetch(raw, topic, READ_COMMITTED, version, 1), producer) == {
        "batches": [*aborted, (3, 1, True, False), (4, 1, True, True)],
        "high_watermark": 5,
        "last_stable_offset": 5,
        "aborted": [(0, 0)],
    }
    assert told(fetch(raw, topic, READ_COMMITTED, version, 3), producer)["aborted"] == []


def offsets(raw: RawClient, name: str, timestamp: int, version: int = 7) -> list[tuple[int, int]]:
    """What ListOffsets finds for readers of all and of committed records."""
    found = []
    for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
        wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=isolation, topics=[ListOffsetsTopic(name=name, partitions=wanted)]
        )
        (answered,) = raw.send(request, version).topics
        (partition,) = answered.partitions
        assert partition.error_code == ErrorCode.NONE
        found.append((partition.offset, min(partition.timestamp, 0)))
    return found


def timed(raw: RawClient, producer: RawProducer, name: str, timestamp: int, sequence: int) -> None:
    """A record of the transaction with this time."""
    batch = build_batch(
        [Record(0, timestamp, None, b"value")],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    (answer,) = send_batches(raw, producer, name, batch)
    assert answer.error_code == ErrorCode.NONE


def send_batches(
    raw: RawClient, producer: RawProducer, name: str, *batches: bytes, version: int = 12
) -> list[Any]:
    """Write a batch into each of the first partitions, just so."""
    data = [PartitionProduceData(index, batch) for index, batch in enumerate(batches)]
    request = ProduceRequest(
        producer.transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=name, partition_data=data)],
    )
    (answered,) = raw.send(request, version).responses
    return list(answered.partition_responses)


def test_list_offsets(raw: RawClient, topic: tuple[str, bytes], producer: RawProducer) -> None:
    """The end for readers of committed records is the last stable offset, and nothing behind it is found by time."""
    name, _ = topic
    timed(raw, producer, name, 1_000, 0)
    assert offsets(raw, name, LATEST) == [(1, -1), (0, -1)]
    assert offsets(raw, name, EARLIEST) == [(0, -1), (0, -1)]
    assert offsets(raw, name, 500) == [(0, 0), (-1, -1)]
    assert offsets(raw, name, MAX_TIMESTAMP) == [(0, 0), (-1, -1)]
    end(producer, COMMIT)
    assert offsets(raw, name, LATEST) == [(2, -1), (2, -1)]
    assert offsets(raw, name, 500) == [(0, 0), (0, 0)]
    assert offsets(raw, name, 1_001) == [(1, 0), (1, 0)]
    assert offsets(raw, name, MAX_TIMESTAMP) == [(1, 0), (1, 0)]


def describe_producers(raw: RawClient, name: str, producer: RawProducer) -> list[dict[str, int]]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[0])])
    (answered,) = raw.send(request, 0).topics
    (partition,) = answered.partitions
    assert partition.error_code == ErrorCode.NONE
    return [
        {
            "id": each.producer_id - producer.producer_id,
            "epoch": each.producer_epoch,
            "sequence": each.last_sequence,
            "coordinator": each.coordinator_epoch,
            "open since": each.current_txn_start_offset,
            "time": min(each.last_timestamp, 0),
        }
        for each in partition.active_producers
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_describe_producers(raw: RawClient, topic: tuple[str, bytes], version: int) -> None:
    """Admins find the transactions that are open; with version 2 the marker brings the next epoch."""
    name, _ = topic
    producer = RawProducer(raw, f"{name}-{version}", version)
    assert producer.init() == ErrorCode.NONE

    def write(*values: bytes) -> None:
        if version == 1:
            assert producer.add(name, 0) == ErrorCode.NONE
        assert producer.produce(name, 0, *values) == ErrorCode.NONE

    assert describe_producers(raw, name, producer) == []
    write(b"a", b"b")
    state = {"id": 0, "epoch": 0, "sequence": 1, "coordinator": -1, "open since": 0, "time": 0}
    assert describe_producers(raw, name, producer) == [state]
    end(producer, ABORT)
    ended = {**state, "coordinator": 0, "open since": -1}
    if version == 2:
        ended |= {"epoch": 1, "sequence": -1}
    assert describe_producers(raw, name, producer) == [ended]
    write(b"c")
    assert describe_producers(raw, name, producer) == [
        {**ended, "sequence": 0 if version == 2 else 2, "open since": 3}
    ]


def write_markers(raw: RawClient, name: str, version: int = 2, **marker: Any) -> dict[int, str]:
    """What becomes of a marker in three partitions, the last of which there is not."""
    fields = {
        "producer_epoch": 0,
        "transaction_result": ABORT,
        "coordinator_epoch": 0,
        "transaction_version": 0,
        **marker,
    }
    topics = [WritableTxnMarkerTopic(name, [0, 1, 2])]
    request = WriteTxnMarkersRequest([WritableTxnMarker(topics=topics, **fields)])
    (answered,) = raw.send(request, version).markers
    assert answered.producer_id == marker["producer_id"]
    (rows,) = answered.topics
    return {each.partition_index: ErrorCode(each.error_code).name for each in rows.partitions}


def markers_of(raw: RawClient, topic: tuple[str, bytes]) -> list[tuple[int, int, int]]:
    """Type, epoch and coordinator epoch of every marker in partition 0."""
    data = fetch(raw, topic, READ_UNCOMMITTED)
    found = []
    for batch in iter_batches(memoryview(bytes(data.records or b""))):
        if batch.is_control:
            (record,) = iter_records(batch)
            found.append((control_type_of(record), batch.producer_epoch, coordinator_epoch_of(record)))
    return found


@pytest.mark.parametrize("version", [1, 2])
def test_markers_of_an_admin(raw: RawClient, topic: tuple[str, bytes], version: int) -> None:
    """A transaction can be ended behind its coordinator's back, but not by older epochs of producer or coordinator."""
    name, _ = topic
    producer = RawProducer(raw, name, 2)
    assert producer.init() == ErrorCode.NONE
    assert producer.produce(name, 0, b"a") == ErrorCode.NONE
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    good = {0: "NONE", 1: "NONE", 2: unknown}
    producer_id = producer.producer_id
    assert write_markers(raw, name, version, producer_id=producer_id, coordinator_epoch=3) == good
    assert fetch(raw, topic, READ_COMMITTED).last_stable_offset == 2
    fenced = "TRANSACTION_COORDINATOR_FENCED"
    assert write_markers(raw, name, version, producer_id=producer_id, coordinator_epoch=2) == {
        0: fenced,
        1: fenced,
        2: unknown,
    }
    assert (
        write_markers(raw, name, version, producer_id=producer_id, producer_epoch=4, coordinator_epoch=3)
        == good
    )
    assert write_markers(
        raw, name, version, producer_id=producer_id, producer_epoch=3, coordinator_epoch=3
    ) == {
        0: "INVALID_PRODUCER_EPOCH",
        1: "INVALID_PRODUCER_EPOCH",
        2: unknown,
    }
    assert markers_of(raw, topic) == [(0, 0, 3), (0, 4, 3)]


def test_markers_of_version_two(raw: RawClient, topic: tuple[str, bytes], producer: RawProducer) -> None:
    """A marker must have a newer epoch than the transaction that it ends; telling an ended one again is no harm."""
    name, _ = topic
    assert producer.produce(name, 0, b"a") == ErrorCode.NONE
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"

    def write(epoch: int) -> dict[int, str]:
        return write_markers(
            raw,
            name,
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            transaction_version=2,
            transaction_result=COMMIT,
        )

    assert write(0) == {0: "INVALID_PRODUCER_EPOCH", 1: "NONE", 2: unknown}
    assert write(1) == {0: "NONE", 1: "NONE", 2: unknown}
    assert write(1) == {0: "NONE", 1: "NONE", 2: unknown}
    assert write(0) == {0: "INVALID_PRODUCER_EPOCH", 1: "INVALID_PRODUCER_EPOCH", 2: unknown}
    assert markers_of(raw, topic) == [(1, 1, 0), (1, 1, 0)]


def test_several_markers_in_a_request(raw: RawClient, topic: tuple[str, bytes]) -> None:
    """They are answered by producer; no markers get no answers."""
    name, _ = topic
    assert raw.send(WriteTxnMarkersRequest([]), 1).markers == []
    markers = [
        WritableTxnMarker(producer_id, 0, COMMIT, [WritableTxnMarkerTopic(name, [index])], 0)
        for producer_id, index in ((70_001, 0), (70_002, 1), (70_001, 1))
    ]
    answered = raw.send(WriteTxnMarkersRequest(markers), 1).markers
    assert {
        each.producer_id: sorted(
            (topic.name == name, row.partition_index, row.error_code)
            for topic in each.topics
            for row in topic.partitions
        )
        for each in answered
    } == {70_001: [(True, 0, 0), (True, 1, 0)], 70_002: [(True, 1, 0)]}


@pytest.mark.parametrize("marker", [{"producer_id": -1}, {"producer_id": 70_003, "producer_epoch": -1}])
def test_markers_of_nobody(raw: RawClient, topic: tuple[str, bytes], marker: dict[str, int]) -> None:
    """Nothing is written, though Kafka takes it for a mistake of its own."""
    error = "UNKNOWN_SERVER_ERROR"
    assert write_markers(raw, topic[0], **marker) == {0: error, 1: error, 2: error}
    assert fetch(raw, topic, READ_COMMITTED).high_watermark == 0


def batch_of(producer: RawProducer, sequence: int = 0, **more: Any) -> bytes:
    fields = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch, **more}
    return build_batch(
        [Record(0, 1_700_000_000_000, None, b"value")],
        base_sequence=sequence,
        is_transactional=True,
        **fields,
    )


def errors(answers: list[Any]) -> list[str]:
    return [ErrorCode(each.error_code).name for each in answers]


@pytest.mark.parametrize("version", range(9, 13))
def test_refused_batches(
    raw: RawClient, topic: tuple[str, bytes], producer: RawProducer, version: int
) -> None:
    """Which producers may not write in a transaction, and what they are told."""
    name, _ = topic

    def send(*batches: bytes) -> list[str]:
        return errors(send_batches(raw, producer, name, *batches, version=version))

    if version < 12:
        (answer,) = send_batches(raw, producer, name, batch_of(producer), version=version)
        assert (ErrorCode(answer.error_code).name, answer.error_message) == (
            ("TRANSACTION_ABORTABLE", None)
            if version == 11
            else ("INVALID_TXN_STATE", "Partition was not added to the transaction")
        )
    else:
        assert send(batch_of(producer, 1)) == ["OUT_OF_ORDER_SEQUENCE_NUMBER"]
        assert send(batch_of(producer)) == ["NONE"]
    unknown = batch_of(producer, producer_id=producer.producer_id + 1_000_000)
    assert send(unknown) == ["INVALID_PRODUCER_ID_MAPPING"]
    assert send(batch_of(producer, producer_epoch=producer.producer_epoch + 1)) == ["INVALID_PRODUCER_EPOCH"]
    assert send(batch_of(producer, 1), unknown) == ["INVALID_PRODUCER_ID_MAPPING"] * 2


def test_transactional_batch_without_a_producer(
    raw: RawClient, topic: tuple[str, bytes], producer: RawProducer
) -> None:
    """Nobody is asked about it: it is read as if it were committed."""
    name, _ = topic
    batch = batch_of(producer, -1, producer_id=-1, producer_epoch=-1)
    assert errors(send_batches(raw, producer, name, batch)) == ["NONE"]
    assert fetch(raw, topic, READ_COMMITTED).last_stable_offset == 1
