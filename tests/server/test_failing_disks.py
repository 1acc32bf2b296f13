"""Disks that fail under a running broker, or are missing at its start: what is there is offline, the rest serves."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, describe, fetch_records, produce, wait_until_served
from ottla.log_store.files import OsFileSystem
from ottla.log_store.log import Log
from ottla.server.log_catalog import StorageFailed
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

Inject = Callable[[Path, str, int], None]
OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    """Two log directories; the first has the metadata."""
    return tmp_path / "a", tmp_path / "b"


@pytest.fixture
def inject(monkeypatch: pytest.MonkeyPatch) -> Iterator[Inject]:
    """Let an operation fail for all files below a directory."""

    def fail(directory: Path, operation: str, number: int) -> None:
        real = getattr(OsFileSystem, operation)

        def call(fd: int, *arguments: object) -> object:
            if os.readlink(f"/proc/self/fd/{fd}").startswith(str(directory)):
                raise OSError(number, os.strerror(number))
            return real(fd, *arguments)

        monkeypatch.setattr(f"ottla.log_store.files.OsFileSystem.{operation}", staticmethod(call))

    yield fail
    monkeypatch.undo()


def running_on(*disks: Path, **settings: object) -> Broker:
    return Broker(data=",".join(map(str, disks)), **settings)


def partition_on(disk: Path, topic: str) -> int:
    (first, *_) = sorted(disk.glob(f"{topic}-*"))
    return int(first.name.rpartition("-")[2])


def produce_error(raw: RawClient, topic: str, partition: int) -> int:
    data = PartitionProduceData(index=partition, records=build_batch([Record(0, 1, None, b"value", ())]))
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    (answer,) = raw.send(request, 9).responses
    return int(answer.partition_responses[0].error_code)


def fetch_error(raw: RawClient, topic: str, partition: int) -> int:
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
    (answer,) = raw.send(request, 11).responses
    return int(answer.partitions[0].error_code)


def list_error(raw: RawClient, topic: str, partition: int) -> int:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    (answer,) = raw.send(request, 7).topics
    return int(answer.partitions[0].error_code)


def directory_errors(raw: RawClient) -> dict[str, int]:
    answer = raw.send(DescribeLogDirsRequest(topics=None), 4)
    return {Path(result.log_dir).name: int(result.error_code) for result in answer.results}


def leader_of(raw: RawClient, topic: str, partition: int) -> tuple[int, int, list[int]]:
    found = {each.partition_index: each for each in describe(raw, topic).partitions}[partition]
    return int(found.error_code), found.leader_id, found.offline_replicas


def assert_offline(raw: RawClient, topic: str, partition: int) -> None:
    """Every client sees that the partition's storage is gone."""
    assert produce_error(raw, topic, partition) == OFFLINE
    assert fetch_error(raw, topic, partition) == OFFLINE
    assert list_error(raw, topic, partition) == OFFLINE


@pytest.mark.parametrize(
    ("operation", "number"), [("pwrite", errno.ENOSPC), ("pwrite", errno.EIO), ("fsync", errno.EIO)]
)
def test_a_directory_that_fails(
    disks: tuple[Path, Path], inject: Inject, monkeypatch: pytest.MonkeyPatch, operation: str, number: int
) -> None:
    """Its partitions are offline until the next start, the others are served on, and nothing acknowledged is
    lost."""
    with (
        running_on(*disks, **{"log.flush.interval.messages": 1}) as broker,
        RawClient.to(broker.bootstrap) as raw,
    ):
        create_topic(raw, "t", 4)
        good, bad = (partition_on(disk, "t") for disk in disks)
        for partition in range(4):
            assert produce(raw, "t", [partition], partition).base_offset == 0
        inject(disks[1], operation, number)
        assert produce_error(raw, "t", bad) == OFFLINE
        monkeypatch.undo()  # the disk is well again, but what it dropped is not known
        eventually(lambda: leader_of(raw, "t", bad), (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1]))
        assert_offline(raw, "t", bad)
        assert leader_of(raw, "t", good) == (ErrorCode.NONE, 1, [])
        assert produce(raw, "t", [5], good).base_offset == 1
        assert directory_errors(raw) == {"a": ErrorCode.NONE, "b": OFFLINE}
        create_topic(raw, "later", 3)
        assert len(list(disks[0].glob("later-*"))) == 3
        results = raw.send(ElectLeadersRequest(election_type=1, topic_partitions=None), 2)
        assert leader_of(raw, "t", bad)[1] == -1, results
    with running_on(*disks) as broker, RawClient.to(broker.bootstrap) as raw:
        wait_until_served(raw, "t", 4)
        for partition in range(4):
            assert fetch_records(raw, "t", partition=partition)
        assert directory_errors(raw) == {"a": ErrorCode.NONE, "b": ErrorCode.NONE}
        assert leader_of(raw, "t", bad) == (ErrorCode.NONE, 1, [])


@pytest.mark.parametrize("is_in_memory", [True, False])
def test_a_read_that_fails(
    disks: tuple[Path, Path], inject: Inject, monkeypatch: pytest.MonkeyPatch, is_in_memory: bool
) -> None:
    """A disk that cannot be read is as offline as one that cannot be written, whichever thread learns it."""
    if not is_in_memory:
        monkeypatch.setattr(OsFileSystem, "pread_cached", staticmethod(lambda *stretch: b""))
        monkeypatch.setattr(OsFileSystem, "is_in_memory", staticmethod(lambda *stretch: False))
    with running_on(*disks) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 2, segment_bytes="1048576")
        bad = partition_on(disks[1], "t")
        for size in (700_000, 700_000):
            data = PartitionProduceData(index=bad, records=build_batch([Record(0, 1, None, bytes(size), ())]))
            topics = [TopicProduceData(name="t", partition_data=[data])]
            raw.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
        inject(disks[1], "pread_cached" if is_in_memory else "pread", errno.EIO)
        assert fetch_error(raw, "t", bad) == OFFLINE
        eventually(lambda: directory_errors(raw), {"a": ErrorCode.NONE, "b": OFFLINE})


@pytest.mark.parametrize("count", [1, 2])
def test_an_index_of_aborted_transactions_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """The partition has the error, whichever way the Fetch is answered."""

    def refuse(*_: object) -> None:
        raise KafkaError(OFFLINE)

    with Broker() as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", count)
        produce(raw, "t", [1])
        monkeypatch.setattr(Log, "aborted_transactions", refuse)
        partitions = [FetchPartition(partition=index, partition_max_bytes=1000) for index in range(count)]
        request = FetchRequest(
            max_bytes=1000, isolation_level=1, topics=[FetchTopic(topic="t", partitions=partitions)]
        )
        (answered,) = raw.send(request, 12).responses
        assert answered.partitions[0].error_code == OFFLINE


def test_topics_of_a_failed_directory_can_be_deleted(
    disks: tuple[Path, Path], inject: Inject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left on the failed disk is set aside when it comes back; a new topic of that name is empty."""
    with running_on(*disks) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 2)
        bad = partition_on(disks[1], "t")
        produce(raw, "t", [1, 2, 3], bad)
        inject(disks[1], "pwrite", errno.EIO)
        assert produce_error(raw, "t", bad) == OFFLINE
        eventually(lambda: leader_of(raw, "t", bad)[1], -1)
        (deleted,) = raw.send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5).responses
        assert deleted.error_code == ErrorCode.NONE
        create_topic(raw, "t", 2)
        assert list_error(raw, "t", bad) == ErrorCode.NONE
    monkeypatch.undo()
    with running_on(*disks) as broker, RawClient.to(broker.bootstrap) as raw:
        wait_until_served(raw, "t", 2)
        assert fetch_records(raw, "t", partition=bad) == b""
        assert len(list(disks[1].glob("t-*-stray"))) == 1


@pytest.mark.parametrize("operation", ["pwrite", "fsync"])
def test_the_directory_of_the_metadata(disks: tuple[Path, Path], inject: Inject, operation: str) -> None:
    """Without it the broker cannot go on, and says so."""
    broker = running_on(*disks)
    broker.start()
    with RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 2, flush_messages="1")
        inject(disks[0], operation, errno.EIO)
        assert produce_error(raw, "t", partition_on(disks[0], "t")) == OFFLINE
    with pytest.RaisesGroup(
        pytest.RaisesExc(StorageFailed, match=rf"{disks[0]}, which holds the metadata, has failed"),
        flatten_subgroups=True,
    ):
        broker.stop()


def test_the_metadata_log_itself(disks: tuple[Path, Path], inject: Inject) -> None:
    """A change of the metadata that the disk refuses is not made, and the broker ends."""
    broker = running_on(*disks)
    broker.start()
    with RawClient.to(broker.bootstrap) as raw:
        inject(disks[0] / "__cluster_metadata-0", "fsync", errno.EIO)
        with pytest.raises((AssertionError, RuntimeError)):
            create_topic(raw, "t", 2)
    with pytest.RaisesGroup(
        pytest.RaisesExc(StorageFailed, match="The metadata log in .* has failed"), flatten_subgroups=True
    ):
        broker.stop()


def test_a_directory_that_is_not_there_at_the_start(disks: tuple[Path, Path], tmp_path: Path) -> None:
    """Its partitions are offline, not empty, and come back with it."""
    with running_on(*disks) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 4)
        good, bad = (partition_on(disk, "t") for disk in disks)
        for partition in range(4):
            produce(raw, "t", [partition], partition)
    disks[1].rename(tmp_path / "elsewhere")
    disks[1].write_text("no directory")
    with running_on(*disks) as broker, RawClient.to(broker.bootstrap) as raw:
        assert leader_of(raw, "t", bad) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])
        assert_offline(raw, "t", bad)
        assert produce(raw, "t", [5], good).base_offset == 1
        assert directory_errors(raw) == {"a": ErrorCode.NONE, "b": OFFLINE}
    with running_on(disks[0]) as broker, RawClient.to(broker.bootstrap) as raw:
        assert_offline(raw, "t", bad)
    disks[1].unlink()
    (tmp_path / "elsewhere").rename(disks[1])
    with running_on(*disks) as broker, RawClient.to(broker.bootstrap) as raw:
        assert leader_of(raw, "t", bad) == (ErrorCode.NONE, 1, [])
        assert produce(raw, "t", [5], bad).base_offset == 1


def test_a_damaged_log(disks: tuple[Path, Path], caplog: pytest.LogCaptureFixture) -> None:
    """One partition is offline with a message that says where it is damaged; its neighbours are not affected."""
    with running_on(disks[0]) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 2)
        for partition in (0, 1):
            for number in range(3):
                produce(raw, "t", [number], partition)
    segment = disks[0] / "t-1" / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    data[30] ^= 1
    segment.write_bytes(data)
    (disks[0] / ".kafka_cleanshutdown").unlink()
    with running_on(disks[0]) as broker, RawClient.to(broker.bootstrap) as raw:
        assert_offline(raw, "t", 1)
        assert leader_of(raw, "t", 1)[:2] == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert produce(raw, "t", [5], 0).base_offset == 3
        assert f"partition is offline: {segment} is damaged at byte 0" in caplog.text
    assert segment.read_bytes() == data


def test_partitions_are_spread_over_the_directories(disks: tuple[Path, Path]) -> None:
    """Each directory gets as many, and a restart finds them all."""
    with running_on(*disks) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 6)
        for partition in range(6):
            produce(raw, "t", [partition], partition)
        assert [len(list(disk.glob("t-*"))) for disk in disks] == [3, 3]
    with running_on(*disks) as broker, RawClient.to(broker.bootstrap) as raw:
        wait_until_served(raw, "t", 6)
        assert all(fetch_records(raw, "t", partition=partition) for partition in range(6))
