"""ListOffsets and OffsetForLeaderEpoch in every version: ends, times, epochs, and what is refused."""

import pytest

from compat_tests.raw_client import RawClient, plain
from compat_tests.raw_topics import create_topic, produce
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.records.compression import Codec

VERSIONS = range(ListOffsetsRequest.MIN_VERSION, ListOffsetsRequest.MAX_VERSION + 1)
T0 = 1_700_000_000_000
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
KNOWN_SINCE = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
NEVER = 99
NOTHING = ("NONE", -1, -1, -1)

Answer = tuple[str, int, int, int]


def look_up(
    raw: RawClient,
    topic: str,
    timestamp: int,
    version: int = 11,
    *,
    partition: int = 0,
    epoch: int = -1,
    replica_id: int = -1,
    isolation_level: int = 0,
) -> Answer:
    """Error, timestamp, offset and epoch for one partition."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
    )
    (answered,) = raw.send(request, version).topics
    (found,) = answered.partitions
    assert (answered.name, found.partition_index) == (topic, partition)
    return ErrorCode(found.error_code).name, found.timestamp, found.offset, found.leader_epoch


def delete_before(raw: RawClient, topic: str, offset: int) -> None:
    """Move the log start."""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=10_000
    )
    assert raw.send(request, 2).topics[0].partitions[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_log(version: int, raw: RawClient, topic_name: str) -> None:
    """Both ends are 0, no time is found, and a timestamp that the version does not know is refused."""
    create_topic(raw, topic_name)
    epoch = 0 if version >= 4 else -1
    ends = ("NONE", -1, 0, epoch)
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, T0):
        found = look_up(raw, topic_name, timestamp, version)
        if timestamp < 0 and version < KNOWN_SINCE.get(timestamp, NEVER):
            assert found == ("UNSUPPORTED_VERSION", -1, -1, -1)
        else:
            assert found == (ends if timestamp in (-1, -2, -4) else NOTHING), timestamp


@pytest.mark.parametrize("version", VERSIONS)
def test_times(version: int, raw: RawClient, topic_name: str) -> None:
    """The first record at or after a time is found, in the middle of a batch and when times do not ascend."""
    create_topic(raw, topic_name, retention_ms="-1")
    produce(raw, topic_name, [T0, T0 + 10, T0 + 20])
    produce(raw, topic_name, [T0 + 90, T0 + 50, T0 + 60])
    produce(raw, topic_name, [T0 + 55])
    epoch = 0 if version >= 4 else -1
    assert look_up(raw, topic_name, LATEST, version) == ("NONE", -1, 7, epoch)
    assert look_up(raw, topic_name, EARLIEST, version) == ("NONE", -1, 0, epoch)
    for timestamp, record in {
        0: (T0, 0),
        T0: (T0, 0),
        T0 + 1: (T0 + 10, 1),
        T0 + 20: (T0 + 20, 2),
        T0 + 21: (T0 + 90, 3),
        T0 + 90: (T0 + 90, 3),
    }.items():
        assert look_up(raw, topic_name, timestamp, version) == ("NONE", *record, epoch), timestamp
    assert look_up(raw, topic_name, T0 + 91, version) == NOTHING
    if version >= 7:
        assert look_up(raw, topic_name, MAX_TIMESTAMP, version) == ("NONE", T0 + 90, 3, epoch)


@pytest.mark.parametrize("codec", list(Codec))
def test_times_in_compressed_batches(codec: Codec, raw: RawClient, topic_name: str) -> None:
    """The record is found inside a compressed batch too."""
    create_topic(raw, topic_name, retention_ms="-1")
    produce(raw, topic_name, [T0 + number for number in range(100)], codec=codec)
    assert look_up(raw, topic_name, T0 + 37) == ("NONE", T0 + 37, 37, 0)
    assert look_up(raw, topic_name, MAX_TIMESTAMP) == ("NONE", T0 + 99, 99, 0)


def test_the_first_of_equal_greatest_timestamps(raw: RawClient, topic_name: str) -> None:
    """Of several records with the greatest timestamp the first is told."""
    create_topic(raw, topic_name, retention_ms="-1")
    produce(raw, topic_name, [T0, T0 + 5, T0 + 5])
    produce(raw, topic_name, [T0 + 5, T0 + 1])
    assert look_up(raw, topic_name, MAX_TIMESTAMP) == ("NONE", T0 + 5, 1, 0)


def test_log_append_time(raw: RawClient, topic_name: str) -> None:
    """With LogAppendTime the time of the append is found."""
    create_topic(raw, topic_name, message_timestamp_type="LogAppendTime")
    appended = produce(raw, topic_name, [T0, T0 + 1])
    assert appended.log_append_time_ms > T0
    assert look_up(raw, topic_name, T0) == ("NONE", appended.log_append_time_ms, 0, 0)
    assert look_up(raw, topic_name, MAX_TIMESTAMP)[:2] == ("NONE", appended.log_append_time_ms)


def test_after_the_log_start_moved(raw: RawClient, topic_name: str) -> None:
    """What was deleted is not found any more, even in the middle of a batch."""
    create_topic(raw, topic_name, retention_ms="-1")
    produce(raw, topic_name, [T0, T0 + 10, T0 + 20, T0 + 30])
    delete_before(raw, topic_name, 2)
    assert look_up(raw, topic_name, EARLIEST) == ("NONE", -1, 2, 0)
    assert look_up(raw, topic_name, -4) == ("NONE", -1, 2, 0)
    assert look_up(raw, topic_name, T0) == ("NONE", T0 + 20, 2, 0)
    delete_before(raw, topic_name, -1)
    assert look_up(raw, topic_name, EARLIEST) == ("NONE", -1, 4, 0)
    assert look_up(raw, topic_name, LATEST) == ("NONE", -1, 4, 0)
    assert look_up(raw, topic_name, T0) == NOTHING


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("replica_id", [-1, -2, 0, 77])
def test_who_asks(replica_id: int, isolation_level: int, raw: RawClient, topic_name: str) -> None:
    """Consumers, replicas and debuggers get the same of a log in which everything is committed."""
    create_topic(raw, topic_name)
    produce(raw, topic_name, [T0])
    who = {"replica_id": replica_id, "isolation_level": isolation_level}
    assert look_up(raw, topic_name, LATEST, **who) == ("NONE", -1, 1, 0)


def test_refused_partitions(raw: RawClient, topic_name: str) -> None:
    """Unknown topics and partitions and epochs that are not the leader's have their errors."""
    create_topic(raw, topic_name)
    assert look_up(raw, topic_name, LATEST, partition=1) == ("UNKNOWN_TOPIC_OR_PARTITION", -1, -1, -1)
    assert look_up(raw, topic_name + "-x", LATEST) == ("UNKNOWN_TOPIC_OR_PARTITION", -1, -1, -1)
    assert look_up(raw, topic_name, LATEST, epoch=0) == ("NONE", -1, 0, 0)
    assert look_up(raw, topic_name, LATEST, epoch=1) == ("UNKNOWN_LEADER_EPOCH", -1, -1, -1)


def test_a_partition_named_twice(raw: RawClient, topic_name: str) -> None:
    """It gets one answer, an error; the others are answered."""
    create_topic(raw, topic_name, partitions=2)
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 1, 0)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic_name, partitions=partitions)]
    )
    (topic,) = raw.send(request, 11).topics
    found = {(answer.partition_index, ErrorCode(answer.error_code).name) for answer in topic.partitions}
    assert len(topic.partitions) == 2
    assert found == {(0, "INVALID_REQUEST"), (1, "NONE")}


def test_nothing_asked(raw: RawClient, topic_name: str) -> None:
    """Topics without partitions are left out of the answer."""
    create_topic(raw, topic_name)
    for topics in ([], [ListOffsetsTopic(name=topic_name)]):
        assert raw.send(ListOffsetsRequest(replica_id=-1, topics=topics), 11).topics == []


@pytest.mark.parametrize("version", [2, 3, 4])
def test_offset_for_leader_epoch(version: int, raw: RawClient, topic_name: str) -> None:
    """The current epoch ends at the log's end; of later ones and unknown partitions nothing is known."""
    create_topic(raw, topic_name)
    produce(raw, topic_name, [T0, T0])
    wanted = [
        OffsetForLeaderPartition(partition=partition, leader_epoch=epoch, current_leader_epoch=current)
        for partition, epoch, current in ((0, 0, -1), (0, 0, 0), (0, 5, 0), (0, -1, 0), (0, 0, 3), (7, 0, 0))
    ]
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(topic=topic_name, partitions=wanted),
            OffsetForLeaderTopic(topic=topic_name + "-x", partitions=wanted[:1]),
        ],
    )
    response = raw.send(request, version)
    assert [topic.topic for topic in response.topics] == [topic_name, topic_name + "-x"]
    answers = [
        [
            (answer.partition, ErrorCode(answer.error_code).name, answer.leader_epoch, answer.end_offset)
            for answer in topic.partitions
        ]
        for topic in response.topics
    ]
    assert answers == [
        [
            (0, "NONE", 0, 2),
            (0, "NONE", 0, 2),
            (0, "NONE", -1, -1),
            (0, "NONE", -1, -1),
            (0, "UNKNOWN_LEADER_EPOCH", -1, -1),
            (7, "UNKNOWN_TOPIC_OR_PARTITION", -1, -1),
        ],
        [(0, "UNKNOWN_TOPIC_OR_PARTITION", -1, -1)],
    ]
    assert plain(response)["throttle_time_ms"] == 0
