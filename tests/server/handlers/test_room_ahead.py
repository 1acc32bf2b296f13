"""Room on the disk that is made in a thread before an append: who waits for it, and who does not."""

import threading
from collections.abc import Iterator

import pytest
import trio

from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, fetch_records, produce
from ottla.log_store.files import LogFile
from ottla.native import speed
from ottla.server import room_ahead
from ottla.server.partition import Partition
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

VERSION = 9
LARGE = 100_000


def batch(size: int = LARGE) -> bytes:
    return build_batch([Record(0, 1, None, b"v" * size, ())])


def request(topic: str, *batches: bytes) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=records) for index, records in enumerate(batches)]
    return ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def answers(raw: RawClient) -> list[tuple[int, int]]:
    (topic,) = raw.receive(ProduceRequest, VERSION).responses
    return [(each.error_code, each.base_offset) for each in topic.partition_responses]


def file_of(broker: Broker, topic: str, index: int = 0) -> LogFile:
    return partition_of(broker, topic, index).log.segments[-1].file


def partition_of(broker: Broker, topic: str, index: int = 0) -> Partition:
    return broker._running.broker.partitions.by_name(topic, index)


class SlowDisk:
    """Takes as long to make room as a test wants, and knows how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.is_asked = threading.Event()
        self.may_go_on = threading.Event()

    def make_room(self, file: LogFile, end: int) -> bool:
        self.asked.append((file.path, end))
        self.is_asked.set()
        assert self.may_go_on.wait(30)
        return True


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    slow = SlowDisk()
    monkeypatch.setattr(room_ahead, "make_room", slow.make_room)
    yield slow
    slow.may_go_on.set()


def test_others_are_served_meanwhile(broker: Broker, raw: RawClient, disk: SlowDisk) -> None:
    """Who appends to that partition waits, and gets its offset in turn; a client of another one does not."""
    create_topic(raw, "crowded")
    create_topic(raw, "elsewhere")
    assert produce(raw, "crowded", [1]).base_offset == 0
    file_of(broker, "crowded").room_mark = 0
    with RawClient.to(broker.bootstrap) as second, RawClient.to(broker.bootstrap) as third:
        raw.send_without_answer(request("crowded", batch()), VERSION)
        assert disk.is_asked.wait(30)
        second.send_without_answer(request("crowded", batch(10)), VERSION)  # however small
        assert produce(third, "elsewhere", [1]).base_offset == 0
        assert partition_of(broker, "crowded").log.log_end_offset == 1
        disk.may_go_on.set()
        assert {answers(raw)[0], answers(second)[0]} == {(ErrorCode.NONE, 1), (ErrorCode.NONE, 2)}
        assert produce(third, "crowded", [1]).base_offset == 3
    assert len(fetch_records(raw, "crowded")) > LARGE
    assert len({path for path, _ in disk.asked}) == 1


def test_several_partitions_in_one_request(broker: Broker, raw: RawClient, disk: SlowDisk) -> None:
    """Room is made where there is too little of it, and each gets its answer."""
    create_topic(raw, "several", partitions=3)
    for index in (0, 2):
        file_of(broker, "several", index).room_mark = 0
    disk.may_go_on.set()
    small = batch(10)
    raw.send_without_answer(request("several", batch(), batch(), small), VERSION)
    assert answers(raw) == [(ErrorCode.NONE, 0)] * 3
    assert {path for path, _ in disk.asked} == {file_of(broker, "several", index).path for index in (0, 2)}


def test_a_topic_that_is_deleted_meanwhile(broker: Broker, raw: RawClient, disk: SlowDisk) -> None:
    """Its file stays open until room has been made; then the partition is looked for again."""
    create_topic(raw, "leaving", partitions=2)
    file_of(broker, "leaving").room_mark = 0
    raw.send_without_answer(request("leaving", batch()), VERSION)
    assert disk.is_asked.wait(30)
    with RawClient.to(broker.bootstrap) as other:
        delete_topic(other, "leaving")
    disk.may_go_on.set()
    [(error, _)] = answers(raw)
    assert error in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR)


def delete_topic(raw: RawClient, name: str) -> None:
    (answer,) = raw.send(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5).responses
    assert answer.error_code == ErrorCode.NONE


def test_a_segment_that_is_rolled_meanwhile(broker: Broker, raw: RawClient, disk: SlowDisk) -> None:
    """The new one takes the batch, and what was set aside for the old one goes back."""
    create_topic(raw, "rolled")
    assert produce(raw, "rolled", [1]).base_offset == 0
    log = partition_of(broker, "rolled").log
    old = log.segments[-1].file
    old.room_mark = 0
    raw.send_without_answer(request("rolled", batch()), VERSION)
    assert disk.is_asked.wait(30)
    assert broker._token is not None
    trio.from_thread.run_sync(log.roll, 1, trio_token=broker._token)
    disk.may_go_on.set()
    assert answers(raw) == [(ErrorCode.NONE, 1)]
    assert old.room_end == 0
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_a_client_that_leaves_meanwhile(broker: Broker, raw: RawClient, disk: SlowDisk) -> None:
    """Others go on with the partition."""
    create_topic(raw, "left")
    file_of(broker, "left").room_mark = 0
    with RawClient.to(broker.bootstrap) as leaving:
        leaving.send_without_answer(request("left", batch()), VERSION)
        assert disk.is_asked.wait(30)
    disk.may_go_on.set()
    raw.send_without_answer(request("left", batch()), VERSION)
    [(error, offset)] = answers(raw)
    assert error == ErrorCode.NONE
    assert offset in (0, 1)  # what had been sent may be appended though nobody hears of it


@pytest.mark.skipif(speed is None, reason="room is made by what is compiled")
def test_a_log_that_grows_has_room_and_gives_it_back() -> None:
    """While it grows, and when the broker has stopped."""
    with Broker() as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "growing")
        path = broker.data / "growing-0" / "00000000000000000000.log"
        for number in range(80):
            raw.send_without_answer(request("growing", batch()), VERSION)
            assert answers(raw) == [(ErrorCode.NONE, number)]
        file = file_of(broker, "growing")
        assert file.size < file.room_end
        size = path.stat().st_size
        assert size == file.size
        partition_of(broker, "growing").log.segments[-1].become_inactive()
        status = path.stat()
        assert status.st_size == size
        assert status.st_blocks * 512 < size + 100_000
