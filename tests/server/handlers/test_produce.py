"""Produce where only Ottla's own state shows: batches that a worker thread opens."""

from random import Random

import pytest

from compat_tests.raw_client import ConnectionClosed, RawClient
from compat_tests.raw_topics import create_topic, produce
from ottla.config.topic_config import TopicConfig
from ottla.log_store.validation import CHEAP_BYTES, is_costly, rules_of
from ottla.server.partition import Partition
from ottla.server.partition_table import PartitionTable
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Codec, Record, build_batch


def large_batch(count: int) -> bytes:
    """One that a worker thread opens."""
    random = Random(4)
    records = [Record(n, 1, b"k", random.randbytes(300), ()) for n in range(count)]
    data = build_batch(records, codec=Codec.GZIP, level=1)
    assert is_costly(memoryview(data), rules_of(TopicConfig()))
    return data


def request(topic: str, acks: int, *batches: bytes) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=records) for index, records in enumerate(batches)]
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def test_large_and_small_batches_in_one_request(raw: RawClient) -> None:
    """Each partition has its answer, in the order of the request, those of refused batches too."""
    create_topic(raw, "mixed", partitions=4, retention_ms="-1")
    small = build_batch([Record(0, 1, None, b"value", ())])
    spoiled = bytearray(large_batch(900))
    spoiled[-1] ^= 1
    for round_number in range(2):
        (answer,) = raw.send(
            request("mixed", -1, large_batch(500), small, bytes(spoiled), large_batch(600)), 9
        ).responses
        assert [(each.index, each.error_code, each.base_offset) for each in answer.partition_responses] == [
            (0, ErrorCode.NONE, 500 * round_number),
            (1, ErrorCode.NONE, round_number),
            (2, ErrorCode.CORRUPT_MESSAGE, -1),
            (3, ErrorCode.NONE, 600 * round_number),
        ]


def test_large_batches_without_an_answer(raw: RawClient) -> None:
    """acks=0 waits for the worker thread too; a batch that is refused closes the connection."""
    create_topic(raw, "unanswered", retention_ms="-1")
    raw.send_without_answer(request("unanswered", 0, large_batch(500)), 9)
    assert produce(raw, "unanswered", [1]).base_offset == 500
    records = large_batch(500)
    raw.send_without_answer(request("unanswered", 0, records[:-1] + b"x"), 9)
    with pytest.raises(ConnectionClosed):
        raw.receive_frame()


def test_a_small_bomb_does_not_hold_the_loop(raw: RawClient) -> None:
    """What looks small and is not is given to a worker thread as well, and is appended like any other."""
    create_topic(raw, "bomb", retention_ms="-1")
    records = build_batch([Record(0, 1, b"k", bytes(8 << 20), ())], codec=Codec.ZSTD)
    assert len(records) < CHEAP_BYTES
    (answer,) = raw.send(request("bomb", -1, records), 9).responses
    (appended,) = answer.partition_responses
    assert (appended.error_code, appended.base_offset) == (ErrorCode.NONE, 0)


def test_a_topic_that_is_deleted_meanwhile(raw: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition is looked up again after the worker thread is done."""
    create_topic(raw, "deleted", retention_ms="-1")
    lookups = []
    by_name = PartitionTable.by_name

    def lose(self: PartitionTable, topic: str, index: int) -> Partition:
        lookups.append(topic)
        if len(lookups) == 3:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return by_name(self, topic, index)

    monkeypatch.setattr(PartitionTable, "by_name", lose)
    (answer,) = raw.send(request("deleted", -1, large_batch(500)), 9).responses
    (refused,) = answer.partition_responses
    assert (refused.index, refused.error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert lookups == ["deleted"] * 3
