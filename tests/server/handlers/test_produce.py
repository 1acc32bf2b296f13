"""Produce where only Ottla's own state shows: a disk that refuses the flush an answer waits for."""

import pytest

from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, produce
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch


def test_a_flush_that_fails_is_answered(raw: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition has a storage error, from then on, and the connection goes on."""
    create_topic(raw, "flushed", flush_messages="1")
    assert produce(raw, "flushed", [1]).base_offset == 0
    data = PartitionProduceData(records=build_batch([Record(0, 1, None, b"value", ())]))
    topics = [TopicProduceData(name="flushed", partition_data=[data])]

    def refuse(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("ottla.log_store.files.OsFileSystem.fsync", staticmethod(refuse))
        (answer,) = raw.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9).responses
    (refused,) = answer.partition_responses
    assert (refused.error_code, refused.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    (answer,) = raw.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9).responses
    (refused,) = answer.partition_responses
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
