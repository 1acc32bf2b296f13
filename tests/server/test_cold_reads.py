"""Records that are not in memory: a worker thread waits for the disk, and the loop serves others meanwhile."""

import errno
import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_share_groups import RawShareConsumer, acquired, configure_group
from compat_tests.raw_topics import create_topic, fetch_records, produce
from ottla.log_store.files import OsFileSystem
from ottla.log_store.log import Log
from ottla.server.cold_reads import ReadAhead
from ottla.server.share import reading
from ottla.testing import Broker
from ottla.wire.chunks import FileSlice
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch
from ottla.wire.records.header import iter_batches
from tests.log_store.forgetful_disk import ForgetfulDisk

MANY = 101  # partitions in one Fetch, which are read in turns
BATCHES, BATCH_BYTES = 60, 30_000
SEGMENT_BYTES = "1048576"  # more than one for so many batches
NOW_MS = 1_700_000_000_000


class SlowDisk(ForgetfulDisk):
    """Whoever has to wait for it does so for as long as a test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        if not self.is_in_memory(fd, offset, length):
            self.is_asked.set()
            assert self.may_go_on.wait(30)
        return super().pread(fd, length, offset)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    slow = SlowDisk()
    monkeypatch.setattr(OsFileSystem, "pread", staticmethod(slow.pread))
    monkeypatch.setattr(OsFileSystem, "pread_cached", staticmethod(slow.pread_cached))
    monkeypatch.setattr(OsFileSystem, "is_in_memory", staticmethod(slow.is_in_memory))
    yield slow
    slow.may_go_on.set()


@pytest.fixture
def broker(disk: SlowDisk) -> Iterator[Broker]:
    settings = {
        "group.share.assignment.interval.ms": "0",
        "group.share.min.record.lock.duration.ms": "1000",
    }
    with Broker(settings) as running:
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[RawClient]:
    with RawClient.to(broker.bootstrap) as client:
        yield client


def fill(raw: RawClient, topic: str, partition: int = 0, *, same_time: bool = False) -> None:
    """Batches of one record each, of a time of their own, or all but the last of the same."""
    for number in range(BATCHES):
        timestamp = NOW_MS + (number // (BATCHES - 1) * 10 if same_time else number)
        records = build_batch([Record(0, timestamp, None, bytes([number]) * BATCH_BYTES, ())])
        data = [PartitionProduceData(index=partition, records=records)]
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
        )
        (answered,) = raw.send(request, 9).responses
        assert answered.partition_responses[0].error_code == ErrorCode.NONE


def first_offset(records: bytes) -> int:
    return next(iter_batches(memoryview(bytearray(records)))).base_offset


def only_threads_waited(disk: SlowDisk) -> bool:
    """Somebody waited for the disk, and it was not the loop."""
    return bool(disk.waited) and all(thread.name.startswith("Trio thread") for thread in disk.waited)


def test_old_records_are_fetched_while_others_are_served(
    broker: Broker, raw: RawClient, disk: SlowDisk
) -> None:
    """The consumer gets them when the disk has told where they are; a producer does not wait for that."""
    create_topic(raw, "old", segment_bytes=SEGMENT_BYTES)
    create_topic(raw, "new")
    fill(raw, "old")
    disk.forget()
    disk.may_go_on.clear()
    wanted = FetchPartition(partition=0, fetch_offset=20, partition_max_bytes=100_000)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(topic="old", partitions=[wanted])]
    )
    raw.send_without_answer(request, 12)
    assert disk.is_asked.wait(30)
    with RawClient.to(broker.bootstrap) as other:
        assert produce(other, "new", [1]).base_offset == 0
        assert fetch_records(other, "new")
    disk.may_go_on.set()
    (answered,) = raw.receive(FetchRequest, 12).responses
    assert answered.partitions[0].error_code == ErrorCode.NONE
    assert first_offset(answered.partitions[0].records) == 20
    assert only_threads_waited(disk)
    disk.waited.clear()
    assert first_offset(fetch_records(raw, "old", 20)) == 20
    assert not disk.waited


def test_each_offset_is_found(raw: RawClient, disk: SlowDisk) -> None:
    """Wherever it is."""
    create_topic(raw, "t", segment_bytes=SEGMENT_BYTES)
    fill(raw, "t")
    disk.forget()
    for offset in range(0, BATCHES, 7):
        assert first_offset(fetch_records(raw, "t", offset)) == offset
    assert only_threads_waited(disk)


def test_many_partitions_in_one_request(raw: RawClient, disk: SlowDisk) -> None:
    """Those that are not in memory are brought one after the other."""
    create_topic(raw, "wide", MANY, segment_bytes=SEGMENT_BYTES)
    for partition in (0, MANY - 1):
        fill(raw, "wide", partition)
    disk.forget()
    wanted = [FetchPartition(partition=index, partition_max_bytes=100) for index in range(MANY)]
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(topic="wide", partitions=wanted)]
    )
    (answered,) = raw.send(request, 12).responses
    found = {each.partition_index: each.records for each in answered.partitions if each.records}
    assert list(found) == [0]  # one batch, however large, and no more than was asked for
    wanted.reverse()
    (answered,) = raw.send(request, 12).responses
    found = {each.partition_index: each.records for each in answered.partitions if each.records}
    assert list(found) == [MANY - 1]
    assert only_threads_waited(disk)


@pytest.mark.parametrize("timestamp", [NOW_MS + 20, -3])
def test_offsets_by_time(raw: RawClient, disk: SlowDisk, timestamp: int) -> None:
    """Of a time, and of the greatest."""
    create_topic(raw, "t", segment_bytes=SEGMENT_BYTES)
    fill(raw, "t")
    disk.forget()
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, timestamp)])]
    (answered,) = raw.send(ListOffsetsRequest(-1, 0, topics), 7).topics
    assert answered.partitions[0].offset == (BATCHES - 1 if timestamp < 0 else 20)
    assert only_threads_waited(disk)


def test_share_groups(raw: RawClient, disk: SlowDisk) -> None:
    """Members of share groups read by other ways."""
    topic_id = create_topic(raw, "t", segment_bytes=SEGMENT_BYTES)
    fill(raw, "t")
    wait_for_coordinator(raw, "g")
    configure_group(raw, "g", share_auto_offset_reset="earliest")
    member = RawShareConsumer(raw, "g", "m", "t")
    member.join_and_wait(1)
    disk.forget()
    rows = acquired(member.fetch(topic_id, 0))[0]
    assert rows[0][0] == 0
    assert only_threads_waited(disk)


def test_few_records_of_a_large_share(raw: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that may have all bytes but takes a few records has no more brought than the first of them."""
    topic_id = create_topic(raw, "t")
    fill(raw, "t")
    wait_for_coordinator(raw, "g")
    configure_group(raw, "g", share_auto_offset_reset="earliest")
    member = RawShareConsumer(raw, "g", "m", "t")
    member.join_and_wait(1)
    lengths: list[int] = []
    really_read = FileSlice.read

    def read(records: FileSlice) -> bytes:
        lengths.append(records.length)
        return really_read(records)

    monkeypatch.setattr(FileSlice, "read", read)
    monkeypatch.setattr(reading, "is_in_memory", lambda *stretch: bool(lengths))
    rows = acquired(member.fetch(topic_id, 0, max_bytes=50 << 20, max_records=2))[0]
    assert [row[:2] for row in rows] == [(0, 1)]
    assert lengths == [1 << 20]


def test_records_of_a_share_that_cannot_be_read(raw: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition has the error, also where a member waits for many bytes, and its connection goes on."""
    topic_id = create_topic(raw, "t")
    fill(raw, "t")
    wait_for_coordinator(raw, "g")
    configure_group(raw, "g", share_auto_offset_reset="earliest")
    member = RawShareConsumer(raw, "g", "m", "t")
    member.join_and_wait(1)
    really_read = Log._read

    def refuse(log: Log, *arguments: Any) -> Any:
        if log.topic == "t":
            raise OSError(errno.EMFILE, "Too many open files")
        return really_read(log, *arguments)

    monkeypatch.setattr(Log, "_read", refuse)
    (row,) = member.fetch(topic_id, 0, min_bytes=100).responses[0].partitions
    assert row.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    assert acquired(member.fetch(topic_id, 0))[0]


def test_a_long_way_by_time_while_others_are_served(broker: Broker, raw: RawClient, disk: SlowDisk) -> None:
    """Very many batches have the time before: they are brought piece by piece."""
    create_topic(raw, "t")
    fill(raw, "t", same_time=True)
    disk.forget()
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, NOW_MS + 5)])]
    (answered,) = raw.send(ListOffsetsRequest(-1, 0, topics), 7).topics
    assert answered.partitions[0].offset == BATCHES - 1
    assert only_threads_waited(disk)
    assert disk.waited_bytes < 2 * BATCHES * BATCH_BYTES


def test_a_disk_that_never_says_that_anything_is_in_memory(raw: RawClient, disk: SlowDisk) -> None:
    """What was brought once and is still said to be missing is read all the same."""
    create_topic(raw, "t", segment_bytes=SEGMENT_BYTES)
    fill(raw, "t")
    disk.hopeless = True
    disk.forget()
    assert first_offset(fetch_records(raw, "t", 20)) == 20
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, NOW_MS + 20)])]
    (answered,) = raw.send(ListOffsetsRequest(-1, 0, topics), 7).topics
    assert answered.partitions[0].offset == 20


def test_how_much_is_read_ahead() -> None:
    """Ever more for who reads on and on, even where the next read begins a little before the end of the last one; here
    and there no more than is asked for. Files are told apart."""
    ahead = ReadAhead()
    position, steps = 1000, []
    for _ in range(6):
        steps.append(ahead.bytes_from(5, position, 100_000))
        assert ahead.bytes_from(6, 40 * position, 100_000) == 100_000
        position += steps[-1] - 20_000
    assert steps[0] == 100_000
    assert all(later == 4 * earlier for earlier, later in pairwise(steps[:4]))
    assert steps[-1] == 8 << 20
    assert ahead.bytes_from(5, position + (50 << 20), 100_000) == 100_000
    assert ahead.bytes_from(7, 0, 20 << 20) == 20 << 20


def test_reading_ahead_forgets_files() -> None:
    """However many a client reads."""
    ahead = ReadAhead()
    for fd in range(5000):
        ahead.bytes_from(fd, 0, 100)
    assert len(ahead._files) <= 1000
    assert ahead.bytes_from(4999, 100, 100) == 400
    assert ahead.bytes_from(0, 100, 100) == 100
