"""Produce in every version: what is appended, what is a duplicate, what is refused and how."""

import time
from typing import Any

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import ConnectionClosed, RawClient, plain
from compat_tests.raw_topics import create_topic, fetch_records
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Codec, Record, build_batch
from ottla.wire.records.header import patch_append_time, split_batches
from ottla.wire.uuids import ZERO_UUID

VERSIONS = range(ProduceRequest.MIN_VERSION, ProduceRequest.MAX_VERSION + 1)
NEWEST_BY_NAME = 12


def batch(count: int = 3, value: bytes = b"value", key: bytes | None = b"key", **more: Any) -> bytes:
    """A batch of equal records with the present time."""
    now_ms = time.time_ns() // 1_000_000
    return build_batch([Record(offset, now_ms, key, value, ()) for offset in range(count)], **more)


def request(
    topic: str, records: bytes | None, *, topic_id: bytes = ZERO_UUID, partition: int = 0, acks: int = -1
) -> ProduceRequest:
    """A request for one partition."""
    data = PartitionProduceData(index=partition, records=records)
    named = TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[named])


def produce(
    raw: RawClient, topic: str, records: bytes | None, version: int = NEWEST_BY_NAME, **more: Any
) -> Any:
    """The answer for the only partition."""
    ((answer,),) = [
        topic.partition_responses for topic in raw.send(request(topic, records, **more), version).responses
    ]
    return answer


def outcome(answer: Any) -> tuple[str, int]:
    return ErrorCode(answer.error_code).name, answer.base_offset


def end_offset(raw: RawClient, topic: str) -> int:
    """The partition's latest offset."""
    wanted = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    response = raw.send(ListOffsetsRequest(replica_id=-1, topics=[wanted]), 7)
    offset = response.topics[0].partitions[0].offset
    assert isinstance(offset, int)
    return offset


def new_producer_id(raw: RawClient) -> int:
    """A producer id nobody else has. A Kafka that has just started may have none ready."""
    given: list[int] = []

    def ask() -> int:
        response = raw.send(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
        given.append(response.producer_id)
        assert isinstance(response.error_code, int)
        return response.error_code

    eventually(ask, 0)
    return given[-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_append_in_every_version(raw: RawClient, topic_name: str, version: int) -> None:
    """The answer has everything the version can say and nothing else."""
    topic_id = create_topic(raw, topic_name)
    produce(raw, topic_name, batch(2))
    by_id = version >= 13
    named = request("" if by_id else topic_name, batch(3), topic_id=topic_id if by_id else ZERO_UUID)
    assert plain(raw.send(named, version)) == {
        "responses": [
            {
                "name": "" if by_id else topic_name,
                "topic_id": topic_id if by_id else ZERO_UUID,
                "partition_responses": [
                    {
                        "index": 0,
                        "error_code": 0,
                        "base_offset": 2,
                        "log_append_time_ms": -1,
                        "log_start_offset": 0 if version >= 5 else -1,
                        "record_errors": [],
                        "error_message": None,
                        "current_leader": {"leader_id": -1, "leader_epoch": -1},
                    }
                ],
            }
        ],
        "throttle_time_ms": 0,
        "node_endpoints": [],
    }


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_is_appended_as_it_is(raw: RawClient, topic_name: str, codec: Codec) -> None:
    """Whatever the codec, the offsets go on."""
    create_topic(raw, topic_name)
    assert outcome(produce(raw, topic_name, batch(5, codec=codec))) == ("NONE", 0)
    assert outcome(produce(raw, topic_name, batch(5, codec=codec))) == ("NONE", 5)


def test_zstd_below_version_7_is_refused(raw: RawClient, topic_name: str) -> None:
    """Clients of that time could not read it back."""
    create_topic(raw, topic_name)
    answer = produce(raw, topic_name, batch(codec=Codec.ZSTD), version=6)
    assert outcome(answer) == ("UNSUPPORTED_COMPRESSION_TYPE", -1)


@pytest.mark.parametrize(
    ("version", "topic_exists", "partition", "expected"),
    [
        (9, False, 0, "UNKNOWN_TOPIC_OR_PARTITION"),
        (9, True, 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (9, True, -1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (13, False, 0, "UNKNOWN_TOPIC_ID"),
        (13, True, 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_partitions_that_are_not_there(
    raw: RawClient, topic_name: str, version: int, topic_exists: bool, partition: int, expected: str
) -> None:
    """By name and by id."""
    topic_id = create_topic(raw, topic_name) if topic_exists else b"\x01" * 16
    answer = produce(raw, topic_name, batch(), version, topic_id=topic_id, partition=partition)
    assert outcome(answer) == (expected, -1)


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_acks_that_do_not_exist(raw: RawClient, topic_name: str, acks: int) -> None:
    """Nothing is appended."""
    create_topic(raw, topic_name)
    assert outcome(produce(raw, topic_name, batch(), acks=acks))[0] == "INVALID_REQUIRED_ACKS"
    assert end_offset(raw, topic_name) == 0


def test_acks_0_has_no_answer_and_an_error_closes_the_connection(
    raw: RawClient, bootstrap: str, topic_name: str
) -> None:
    """The next answer on the connection is that of the next request; a failure can only be told by closing."""
    create_topic(raw, topic_name)
    with RawClient.to(bootstrap) as other:
        other.send_without_answer(request(topic_name, batch(), acks=0), 9)
        assert outcome(produce(other, topic_name, batch())) == ("NONE", 3)
        other.send_without_answer(request("no-such-topic", batch(), acks=0), 9)
        with pytest.raises(ConnectionClosed):
            other.receive_frame()


def test_a_repeated_batch_of_an_idempotent_producer_keeps_its_offset(raw: RawClient, topic_name: str) -> None:
    """The last five batches are remembered; a duplicate is answered with the original offset."""
    create_topic(raw, topic_name)
    producer_id = new_producer_id(raw)
    batches = [
        batch(2, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        for sequence in range(0, 12, 2)
    ]
    assert [outcome(produce(raw, topic_name, each)) for each in batches] == [
        ("NONE", n) for n in range(0, 12, 2)
    ]
    assert [outcome(produce(raw, topic_name, each)) for each in batches[1:]] == [
        ("NONE", n) for n in range(2, 12, 2)
    ]
    assert outcome(produce(raw, topic_name, batches[0]))[0] == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert end_offset(raw, topic_name) == 12


@pytest.mark.parametrize(
    ("epoch", "sequence", "expected"),
    [
        (1, 3, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (1, 1, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (0, 2, "INVALID_PRODUCER_EPOCH"),
        (2, 2, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (2, 0, "NONE"),
        (1, 2, "NONE"),
    ],
)
def test_sequences_and_epochs(
    raw: RawClient, topic_name: str, epoch: int, sequence: int, expected: str
) -> None:
    """After a batch of epoch 1 with sequences 0 and 1: gaps, overlaps, older and newer epochs."""
    create_topic(raw, topic_name)
    producer_id = new_producer_id(raw)
    produce(raw, topic_name, batch(2, producer_id=producer_id, producer_epoch=1, base_sequence=0))
    answer = produce(
        raw, topic_name, batch(2, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    )
    assert outcome(answer) == (expected, 2 if expected == "NONE" else -1)


def test_too_large_a_batch(raw: RawClient, topic_name: str) -> None:
    """Larger than max.message.bytes is refused, the connection goes on."""
    create_topic(raw, topic_name, max_message_bytes="1000")
    assert outcome(produce(raw, topic_name, batch(1, value=bytes(2000)))) == ("MESSAGE_TOO_LARGE", -1)
    assert outcome(produce(raw, topic_name, batch(1, value=bytes(500)))) == ("NONE", 0)


def test_log_append_time(raw: RawClient, topic_name: str) -> None:
    """The broker's clock is told back."""
    create_topic(raw, topic_name, message_timestamp_type="LogAppendTime")
    before_ms = time.time_ns() // 1_000_000
    answer = produce(raw, topic_name, batch())
    assert before_ms <= answer.log_append_time_ms <= time.time_ns() // 1_000_000


def test_a_client_cannot_claim_log_append_time(raw: RawClient, topic_name: str) -> None:
    """With CreateTime on the topic, the attribute is the broker's to set: it is taken off again."""
    create_topic(raw, topic_name)
    records = bytearray(batch())
    patch_append_time(memoryview(records), 0, time.time_ns() // 1_000_000)
    assert outcome(produce(raw, topic_name, bytes(records))) == ("NONE", 0)
    (stored,) = split_batches(memoryview(bytearray(fetch_records(raw, topic_name))))
    assert (stored.timestamp_type, stored.crc_matches()) == (0, True)


def test_timestamps_too_far_in_the_future(raw: RawClient, topic_name: str) -> None:
    """message.timestamp.after.max.ms refuses the batch."""
    create_topic(raw, topic_name)
    later_ms = time.time_ns() // 1_000_000 + 2 * 3600 * 1000
    records = build_batch([Record(0, later_ms, b"k", b"v", ())])
    assert outcome(produce(raw, topic_name, records)) == ("INVALID_TIMESTAMP", -1)


@pytest.mark.parametrize("transactional", [False, True])
def test_control_and_transactional_batches_of_strangers(
    raw: RawClient, topic_name: str, transactional: bool
) -> None:
    """Clients write no control records, and nothing transactional without a transactional id."""
    create_topic(raw, topic_name)
    producer_id = new_producer_id(raw)
    records = batch(
        1,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=transactional,
        is_control=not transactional,
    )
    expected = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" if transactional else "INVALID_RECORD"
    assert outcome(produce(raw, topic_name, records))[0] == expected
    assert end_offset(raw, topic_name) == 0


@pytest.mark.parametrize("count", [0, 2])
def test_exactly_one_batch(raw: RawClient, topic_name: str, count: int) -> None:
    """Since format 2 a partition's data is one batch."""
    create_topic(raw, topic_name)
    assert outcome(produce(raw, topic_name, batch() * count)) == ("INVALID_RECORD", -1)
    assert end_offset(raw, topic_name) == 0


def test_a_wrong_crc(raw: RawClient, topic_name: str) -> None:
    """One flipped bit is found."""
    create_topic(raw, topic_name)
    records = bytearray(batch())
    records[-1] ^= 1
    assert outcome(produce(raw, topic_name, bytes(records))) == ("CORRUPT_MESSAGE", -1)
    assert end_offset(raw, topic_name) == 0


def test_compacted_topics_need_keys(raw: RawClient, topic_name: str) -> None:
    """Each record without a key is named."""
    create_topic(raw, topic_name, cleanup_policy="compact")
    answer = produce(raw, topic_name, batch(2, key=None))
    assert outcome(answer) == ("INVALID_RECORD", -1)
    assert [each.batch_index for each in answer.record_errors] == [0, 1]
    assert outcome(produce(raw, topic_name, batch(2))) == ("NONE", 0)


def test_several_partitions_fail_and_succeed_for_themselves(raw: RawClient, topic_name: str) -> None:
    """An error of one partition is that partition's."""
    create_topic(raw, topic_name, partitions=2)
    corrupt = bytearray(batch())
    corrupt[-1] ^= 1
    data = [
        PartitionProduceData(index=0, records=bytes(corrupt)),
        PartitionProduceData(index=1, records=batch()),
    ]
    named = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic_name, partition_data=data)]
    )
    (answered,) = raw.send(named, NEWEST_BY_NAME).responses
    answers = {each.index: outcome(each) for each in answered.partition_responses}
    assert answers == {0: ("CORRUPT_MESSAGE", -1), 1: ("NONE", 0)}
