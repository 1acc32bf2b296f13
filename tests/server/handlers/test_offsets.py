"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords where only Ottla's own state shows: refusals, restarts."""

from pathlib import Path

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, produce
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

T0 = 1_700_000_000_000


def look_up(raw: RawClient, topic: str, timestamp: int, **more: int) -> ListOffsetsPartitionResponse:
    """The answer for partition 0."""
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[wanted])], **more)
    (found,) = raw.send(request, 11).topics[0].partitions
    assert isinstance(found, ListOffsetsPartitionResponse)
    return found


def test_an_isolation_level_that_does_not_exist(raw: RawClient) -> None:
    """It is refused, not guessed."""
    create_topic(raw, "isolation")
    assert (
        look_up(raw, "isolation", -1, replica_id=-1, isolation_level=9).error_code
        == ErrorCode.INVALID_REQUEST
    )


def test_times_are_found_across_segments(raw: RawClient) -> None:
    """With a segment for every few batches, every timestamp leads to its record."""
    create_topic(raw, "segments", retention_ms="-1", segment_bytes="1048576", segment_ms="1000")
    for number in range(12):
        produce(raw, "segments", [T0 + 2000 * number, T0 + 2000 * number + 1])
    for number in range(12):
        for step in (0, 1):
            found = look_up(raw, "segments", T0 + 2000 * number + step, replica_id=-1)
            assert (found.offset, found.timestamp) == (2 * number + step, T0 + 2000 * number + step)
    newest = look_up(raw, "segments", -3, replica_id=-1)
    assert (newest.offset, newest.timestamp) == (23, T0 + 2000 * 11 + 1)


def test_a_time_in_a_batch_of_many_records(raw: RawClient) -> None:
    """Such a batch is looked through in a worker thread, with the same answer."""
    create_topic(raw, "crowded", retention_ms="-1")
    produce(raw, "crowded", [T0 + number for number in range(3000)])
    produce(raw, "crowded", [T0 + 5000])
    for asked in (0, 1, 2999):
        found = look_up(raw, "crowded", T0 + asked, replica_id=-1)
        assert (found.offset, found.timestamp) == (asked, T0 + asked)
    assert look_up(raw, "crowded", T0 + 3000, replica_id=-1).offset == 3000
    assert look_up(raw, "crowded", T0 + 5001, replica_id=-1).offset == -1


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    """The log start is where it was after a restart, and the leader epoch still ends at the log's end."""
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", retention_ms="-1")
        produce(raw, "t", [T0] * 10)
        partition = DeleteRecordsPartition(partition_index=0, offset=7)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name="t", partitions=[partition])], timeout_ms=1000
        )
        assert raw.send(request, 2).topics[0].partitions[0].low_watermark == 7
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        assert look_up(raw, "t", -2, replica_id=-1).offset == 7
        assert look_up(raw, "t", -1, replica_id=-1).offset == 10
        asked = OffsetForLeaderPartition(partition=0, leader_epoch=look_up(raw, "t", -1).leader_epoch)
        topics = [OffsetForLeaderTopic(topic="t", partitions=[asked])]
        answer = (
            raw.send(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), 4).topics[0].partitions[0]
        )
        assert (answer.leader_epoch, answer.end_offset) == (asked.leader_epoch, 10)


def test_files_of_deleted_records_are_removed(tmp_path: Path) -> None:
    """Not only the next retention that finds something to delete removes them."""
    with (
        Broker({"log.segment.delete.delay.ms": "0"}, data=tmp_path) as broker,
        RawClient.to(broker.bootstrap) as raw,
    ):
        create_topic(raw, "t", retention_ms="-1", segment_ms="1")
        for number in range(3):
            produce(raw, "t", [T0 + 1000 * number])
        partition = DeleteRecordsPartition(partition_index=0, offset=-1)
        topics = [DeleteRecordsTopic(name="t", partitions=[partition])]
        raw.send(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2)
        eventually(lambda: list((tmp_path / "t-0").glob("*.deleted")), [])
        assert len(list((tmp_path / "t-0").glob("*.log"))) == 1


def test_very_many_partitions_at_once(raw: RawClient) -> None:
    """A request that takes turns with others is answered as whole and as right as a small one."""
    count = 250
    create_topic(raw, "many", partitions=count)
    produce(raw, "many", [T0], partition=count - 1)
    wanted = [
        ListOffsetsPartition(partition_index=index, timestamp=-1) for index in [*range(count), count, 7]
    ]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="many", partitions=wanted)])
    (topic,) = raw.send(request, 7).topics
    found = {each.partition_index: (each.error_code, each.offset) for each in topic.partitions}
    expected = dict.fromkeys(range(count), (ErrorCode.NONE, 0))
    expected[7] = (ErrorCode.INVALID_REQUEST, -1)
    expected[count - 1] = (ErrorCode.NONE, 1)
    expected[count] = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert found == expected
