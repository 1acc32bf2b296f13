"""The compiled readers and writers of requests: what they say, the codecs in Python say too."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.api_keys import ApiKey
from ottla.wire.errors import KafkaError, MalformedMessage
from ottla.wire.headers import (
    RequestHeader,
    decode_request_header,
    encode_request_header,
    encode_response_header,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.records.builder import build_batch, with_offsets
from ottla.wire.records.header import TRANSACTIONAL_BIT, BatchView
from ottla.wire.records.records import Record
from ottla.wire.records.scan import scan_records
from ottla.wire.schema import decode, encode

TOPIC_ID = bytes(range(16))
OFFSETS = st.integers(-1, 2**63 - 1)

records = st.builds(
    Record,
    offset=st.just(0),
    timestamp=st.integers(0, 2**40),
    key=st.none() | st.binary(max_size=200),
    value=st.none() | st.binary(max_size=200),
    headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(
        tuple
    ),
)
client_ids = st.none() | st.text(st.characters(max_codepoint=0x7F), max_size=20)
topics = st.text("abcXYZ019._-", min_size=1, max_size=249)
i32 = st.integers(-(2**31), 2**31 - 1)


def request_frame(request: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
    header = RequestHeader(request.API_KEY, version, correlation_id, client_id)
    return encode_request_header(header) + encode(request, version)


def response_frame(response: Any, version: int, correlation_id: int) -> bytes:
    body = encode_response_header(response.API_KEY, version, correlation_id) + encode(response, version)
    return len(body).to_bytes(4, "big") + body


def produce_request(
    version: int,
    topic: str,
    index: int,
    batch: bytes,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    data = TopicProduceData(topic, TOPIC_ID, [PartitionProduceData(index, batch)])
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=[data])


@given(
    version=st.integers(3, 13),
    topic=topics,
    index=i32,
    correlation_id=i32,
    client_id=client_ids,
    acks=st.sampled_from([1, -1]),
    batch=st.lists(records, min_size=1, max_size=30),
    producer_id=st.sampled_from([-1, 5]),
    transactional_id=st.none() | st.text(st.characters(max_codepoint=0x7F), min_size=1, max_size=255),
)
@settings(max_examples=300)
def test_an_ordinary_produce_is_read(speed: ModuleType, **drawn: Any) -> None:
    """Every number of it, and where the batch lies."""
    version, topic, index = drawn["version"], drawn["topic"], drawn["index"]
    transactional_id = drawn["transactional_id"]
    batch = build_batch(
        with_offsets(drawn["batch"]),
        producer_id=drawn["producer_id"],
        base_sequence=0,
        is_transactional=transactional_id is not None,
    )
    request = produce_request(version, topic, index, batch, drawn["acks"], transactional_id)
    frame = request_frame(request, version, drawn["correlation_id"], drawn["client_id"])
    begin = frame.index(batch)
    timestamps = [record.timestamp for record in drawn["batch"]]
    assert speed.read_produce(frame) == (
        version,
        drawn["correlation_id"],
        topic if version < 13 else TOPIC_ID,
        index,
        begin,
        begin + len(batch),
        transactional_id is not None,
        1 if len(batch) <= 4096 and transactional_id is None else 2,
        sum(record.key is None for record in drawn["batch"]),
        min(timestamps),
        (len(timestamps), max(timestamps), drawn["producer_id"], -1, 0),
    )


@given(
    version=st.integers(3, 13),
    batch=st.lists(records, min_size=1, max_size=5),
    damage=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=3),
    cut=st.integers(0, 3),
    transactional_id=st.sampled_from([None, "transactions"]),
)
@settings(max_examples=1000)
def test_what_it_reads_of_damaged_bytes_is_what_python_reads(
    speed: ModuleType,
    version: int,
    batch: list[Record],
    damage: list[tuple[int, int]],
    cut: int,
    transactional_id: str | None,
) -> None:
    """It may give up where Python does not, never the other way round, and both see the same."""
    data_batch = build_batch(with_offsets(batch), is_transactional=transactional_id is not None)
    request = produce_request(version, "topic", 3, data_batch, transactional_id=transactional_id)
    frame = bytearray(request_frame(request, version, 77, "me"))
    for place, byte in damage:
        frame[place % len(frame)] = byte
    del frame[len(frame) - cut :]
    found = speed.read_produce(bytes(frame))
    if found is None:
        return
    header, position = decode_request_header(memoryview(frame))
    assert header.api_key == ApiKey.PRODUCE
    decoded = decode(ProduceRequest, header.api_version, memoryview(frame)[position:])
    (named,) = decoded.topic_data
    (data,) = named.partition_data
    attributes = 0 if decoded.transactional_id is None else TRANSACTIONAL_BIT
    assert decoded.transactional_id != ""
    assert decoded.acks in (1, -1)
    assert data.records is not None
    view = BatchView(memoryview(data.records))
    payload = view.payload
    scan = scan_records(payload, len(payload), view.records_count)
    assert (view.base_offset, view.magic, view.attributes) == (0, 2, attributes)
    assert view.records_count == view.last_offset_delta + 1
    assert view.size_in_bytes == len(data.records)
    assert scan.is_numbered
    assert view.base_timestamp + scan.greatest_timestamp_delta == view.max_timestamp
    assert found == (
        header.api_version,
        header.correlation_id,
        named.name if header.api_version < 13 else named.topic_id,
        data.index,
        found[4],
        found[4] + len(data.records),
        view.is_transactional,
        2 if view.is_transactional or view.size_in_bytes > 4096 else int(view.crc_matches()),
        scan.keyless,
        view.base_timestamp + scan.least_timestamp_delta,
        (
            view.records_count,
            view.max_timestamp,
            view.producer_id,
            view.producer_epoch,
            view.base_sequence,
        ),
    )
    assert frame[found[4] : found[5]] == bytes(data.records)


def one_record(**fields: Any) -> bytes:
    return build_batch(with_offsets([Record(0, 5, b"k", b"v", ())]), **fields)


def with_field(batch: bytes, position: int, value: bytes) -> bytes:
    return batch[:position] + value + batch[position + len(value) :]


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(produce_request(9, "t", 0, one_record(), acks=0), id="acks 0"),
        pytest.param(produce_request(9, "t", 0, one_record(), acks=2), id="acks 2"),
        pytest.param(produce_request(9, "t", 0, b""), id="no batch"),
        pytest.param(produce_request(9, "t", 0, one_record() * 2), id="two batches"),
        pytest.param(produce_request(9, "t", 0, one_record(codec=2)), id="snappy"),
        pytest.param(produce_request(9, "t", 0, one_record(is_transactional=True)), id="transactional"),
        pytest.param(
            produce_request(9, "t", 0, one_record(is_transactional=True), transactional_id=""), id="empty id"
        ),
        pytest.param(
            produce_request(9, "t", 0, one_record(is_transactional=True), transactional_id="x" * 256),
            id="long id",
        ),
        pytest.param(
            produce_request(9, "t", 0, one_record(is_transactional=True), transactional_id="\u00fc"),
            id="id in another script",
        ),
        pytest.param(produce_request(9, "t", 0, with_field(one_record(), 0, b"\0" * 7 + b"\1")), id="offset"),
        pytest.param(produce_request(9, "t", 0, with_field(one_record(), 16, b"\1")), id="magic"),
        pytest.param(produce_request(9, "t", 0, with_field(one_record(), 35, b"\0" * 7 + b"\6")), id="time"),
        pytest.param(produce_request(9, "t", 0, with_field(one_record(), 60, b"\2")), id="count"),
        pytest.param(
            produce_request(
                9, "t", 0, with_field(one_record(producer_id=5, base_sequence=0), 53, b"\xff" * 4)
            ),
            id="sequence",
        ),
        pytest.param(ProduceRequest(acks=1, topic_data=[]), id="no topic"),
        pytest.param(
            ProduceRequest(
                transactional_id="x", acks=1, topic_data=produce_request(9, "t", 0, one_record()).topic_data
            ),
            id="transactional id",
        ),
        pytest.param(
            ProduceRequest(acks=1, topic_data=produce_request(9, "t", 0, one_record()).topic_data * 2),
            id="two topics",
        ),
        pytest.param(ListOffsetsRequest(replica_id=-1, topics=[]), id="another request"),
    ],
)
def test_what_is_not_ordinary_is_left_to_python(speed: ModuleType, request_: Any) -> None:
    """Neither read nor refused."""
    assert speed.read_produce(request_frame(request_, 9, 1, "me")) is None
    assert speed.read_list_offsets(request_frame(request_, 9, 1, "me")) is None


@given(
    version=st.integers(3, 13),
    correlation_id=i32,
    topic=topics,
    index=i32,
    offsets=st.tuples(OFFSETS, OFFSETS, OFFSETS),
)
def test_the_answer_to_a_produce(
    speed: ModuleType,
    version: int,
    correlation_id: int,
    topic: str,
    index: int,
    offsets: tuple[int, int, int],
) -> None:
    """The same bytes as from the codec."""
    base_offset, append_time_ms, start_offset = offsets
    row = PartitionProduceResponse(
        index=index, base_offset=base_offset, log_append_time_ms=append_time_ms, log_start_offset=start_offset
    )
    expected = response_frame(
        ProduceResponse([TopicProduceResponse(topic, TOPIC_ID, [row])]), version, correlation_id
    )
    named = topic if version < 13 else TOPIC_ID
    assert speed.produce_answer(version, correlation_id, named, index, *offsets) == expected


@given(
    version=st.integers(1, 11),
    correlation_id=i32,
    client_id=client_ids,
    replica_id=i32,
    isolation_level=st.integers(0, 1),
    topic=topics,
    index=i32,
    leader_epoch=i32,
    timestamp=st.sampled_from([-1, -2]),
)
def test_an_ordinary_list_offsets_is_read(speed: ModuleType, **drawn: Any) -> None:
    """Every number of it."""
    version = drawn["version"]
    wanted = ListOffsetsPartition(drawn["index"], drawn["leader_epoch"], drawn["timestamp"])
    request = ListOffsetsRequest(
        drawn["replica_id"],
        drawn["isolation_level"] if version >= 2 else 0,
        [ListOffsetsTopic(drawn["topic"], [wanted])],
        7,
    )
    frame = request_frame(request, version, drawn["correlation_id"], drawn["client_id"])
    assert speed.read_list_offsets(frame) == (
        version,
        drawn["correlation_id"],
        drawn["replica_id"],
        drawn["isolation_level"] if version >= 2 else 0,
        drawn["topic"],
        drawn["index"],
        drawn["leader_epoch"] if version >= 4 else -1,
        drawn["timestamp"],
    )
    for cut in range(len(frame)):
        assert speed.read_list_offsets(frame[:cut]) is None
    assert speed.read_list_offsets(frame + b"\0") is None
    assert speed.read_produce(frame) is None


@given(
    version=st.integers(1, 11),
    place=st.integers(0, 200),
    byte=st.integers(0, 255),
)
@settings(max_examples=500)
def test_what_it_reads_of_a_damaged_list_offsets_is_what_python_reads(
    speed: ModuleType, version: int, place: int, byte: int
) -> None:
    """It may give up where Python does not, never the other way round."""
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic("topic", [ListOffsetsPartition(1, 2, -1)])])
    frame = bytearray(request_frame(request, version, 5, "me"))
    frame[place % len(frame)] = byte
    found = speed.read_list_offsets(frame)
    try:
        header, position = decode_request_header(memoryview(frame))
        decoded = decode(ListOffsetsRequest, header.api_version, memoryview(frame)[position:])
    except (MalformedMessage, KafkaError, ValueError):
        assert found is None
        return
    if found is not None:
        (named,) = decoded.topics
        (wanted,) = named.partitions
        assert found == (
            header.api_version,
            header.correlation_id,
            decoded.replica_id,
            decoded.isolation_level,
            named.name,
            wanted.partition_index,
            wanted.current_leader_epoch,
            wanted.timestamp,
        )


@given(version=st.integers(1, 11), correlation_id=i32, topic=topics, index=i32, offset=OFFSETS, epoch=i32)
def test_the_answer_to_a_list_offsets(
    speed: ModuleType, version: int, correlation_id: int, topic: str, index: int, offset: int, epoch: int
) -> None:
    """The same bytes as from the codec."""
    row = ListOffsetsPartitionResponse(index, 0, -1, offset, epoch if version >= 4 else -1)
    expected = response_frame(
        ListOffsetsResponse(topics=[ListOffsetsTopicResponse(topic, [row])]), version, correlation_id
    )
    assert speed.list_offsets_answer(version, correlation_id, topic, index, offset, epoch) == expected


@pytest.mark.parametrize("topic", [b"short", "x" * 250, 5, None])
def test_an_answer_about_what_is_no_topic_is_refused(speed: ModuleType, topic: Any) -> None:
    """No byte is written outside the room for it."""
    with pytest.raises((ValueError, TypeError)):
        speed.produce_answer(9, 1, topic, 0, 0, 0, 0)
    with pytest.raises((ValueError, TypeError)):
        speed.list_offsets_answer(9, 1, topic, 0, 0, 0)
