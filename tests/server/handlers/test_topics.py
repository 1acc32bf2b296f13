"""CreateTopics, DeleteTopics and CreatePartitions under concurrency, settings and restarts."""

import os
import threading
from pathlib import Path

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, describe, produce
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def test_many_create_the_same_topic(broker: Broker) -> None:
    """Exactly one of them has created it; the others hear that it exists."""
    codes: list[int] = []

    def create() -> None:
        with RawClient.to(broker.bootstrap) as raw:
            topic = CreatableTopic(name="contended", num_partitions=1, replication_factor=1)
            codes.append(raw.send(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [ErrorCode.NONE] + [ErrorCode.TOPIC_ALREADY_EXISTS] * 7


def test_deletion_can_be_switched_off() -> None:
    """TOPIC_DELETION_DISABLED, or an invalid request for versions that do not know that error."""
    with Broker(delete_topic_enable=False) as broker, RawClient.to(broker.bootstrap) as raw:
        topic_id = create_topic(raw, "t")
        by_name = DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
        for version in range(1, 6):
            (result,) = raw.send(by_name, version).responses
            expected = ErrorCode.INVALID_REQUEST if version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
            assert (result.name, result.error_code) == ("t", expected)
        by_id = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=1000)
        (result,) = raw.send(by_id, 6).responses
        assert (result.topic_id, result.error_code) == (topic_id, ErrorCode.TOPIC_DELETION_DISABLED)
        assert describe(raw, "t").error_code == ErrorCode.NONE


def test_a_deleted_topic_stays_deleted(tmp_path: Path) -> None:
    """Also when one of the same name came after it, and across a restart."""
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        for _ in range(3):
            create_topic(raw, "again")
            produce(raw, "again", [1_700_000_000_000])
            raw.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="again")], timeout_ms=1000), 6)
            assert describe(raw, "again").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        create_topic(raw, "again")
        assert produce(raw, "again", [1_700_000_000_000]).base_offset == 0
        raw.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="again")], timeout_ms=1000), 6)
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        assert describe(raw, "again").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        create_topic(raw, "again")
        assert produce(raw, "again", [1_700_000_000_000]).base_offset == 0


def test_more_partitions_than_one_change_can_hold(raw: RawClient) -> None:
    """Refused with a reason and without effect (Kafka answers UNKNOWN_SERVER_ERROR)."""
    create_topic(raw, "big")
    for count in (20_000, 2_147_483_647):
        wanted = CreatePartitionsTopic(name="big", count=count, assignments=None)
        response = raw.send(CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000), 3)
        assert response.results[0].error_code == ErrorCode.POLICY_VIOLATION
        assert len(describe(raw, "big").partitions) == 1


def test_partitions_whose_logs_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others of the topic are served, and a restart makes up for the missing ones."""
    really_make = os.mkdir

    def make_most(path: str) -> None:
        if path.endswith("-1"):
            raise OSError(24, "Too many open files")
        really_make(path)

    topic = CreatableTopic(name="t", num_partitions=3, replication_factor=1)
    with (
        Broker(data=tmp_path) as broker,
        RawClient.to(broker.bootstrap) as raw,
        monkeypatch.context() as patch,
    ):
        patch.setattr("ottla.log_store.files.OsFileSystem.mkdir", staticmethod(make_most))
        raw.send(CreateTopicsRequest(topics=[topic]), 7)
        assert produce(raw, "t", [1], partition=2).base_offset == 0
        eventually(lambda: [each.leader_id for each in describe(raw, "t").partitions], [1, -1, 1])
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        assert [produce(raw, "t", [1], partition=index).base_offset for index in range(3)] == [0, 0, 1]
