"""DeleteRecords, DescribeProducers and DescribeLogDirs in every version."""

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, produce
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from ottla.wire.messages.describe_producers import DescribeProducersRequest, ProducerState, TopicRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

T0 = 1_700_000_000_000


def delete(
    raw: RawClient, version: int, *wanted: tuple[str, int, int]
) -> dict[tuple[str, int], tuple[str, int]]:
    """Delete records of (topic, partition) before an offset: error and low watermark of each."""
    topics: dict[str, DeleteRecordsTopic] = {}
    for name, index, offset in wanted:
        topic = topics.setdefault(name, DeleteRecordsTopic(name=name))
        topic.partitions.append(DeleteRecordsPartition(partition_index=index, offset=offset))
    response = raw.send(DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=10_000), version)
    return {
        (topic.name, each.partition_index): (ErrorCode(each.error_code).name, each.low_watermark)
        for topic in response.topics
        for each in topic.partitions
    }


def fetch_error(raw: RawClient, topic: str, offset: int) -> tuple[str, int]:
    """Error and log start offset of a fetch at an offset."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[FetchTopic(topic=topic, partitions=[partition])]
    )
    (data,) = raw.send(request, 11).responses[0].partitions
    return ErrorCode(data.error_code).name, data.log_start_offset


@pytest.mark.parametrize("version", [0, 1, 2])
def test_delete_records(version: int, raw: RawClient, topic_name: str) -> None:
    """The log start moves forward and never back, up to the high watermark and not beyond."""
    create_topic(raw, topic_name, retention_ms="-1")
    produce(raw, topic_name, [T0] * 10)
    key = (topic_name, 0)
    assert delete(raw, version, (topic_name, 0, 4)) == {key: ("NONE", 4)}
    assert fetch_error(raw, topic_name, 3)[0] == "OFFSET_OUT_OF_RANGE"
    assert fetch_error(raw, topic_name, 4) == ("NONE", 4)
    assert delete(raw, version, (topic_name, 0, 2)) == {key: ("NONE", 4)}
    assert delete(raw, version, (topic_name, 0, 11)) == {key: ("OFFSET_OUT_OF_RANGE", -1)}
    assert delete(raw, version, (topic_name, 0, -2)) == {key: ("OFFSET_OUT_OF_RANGE", -1)}
    assert delete(raw, version, (topic_name, 0, -1)) == {key: ("NONE", 10)}
    assert delete(raw, version, (topic_name, 0, 10)) == {key: ("NONE", 10)}
    assert produce(raw, topic_name, [T0]).base_offset == 10


def test_records_that_may_not_be_deleted(raw: RawClient, topic_name: str) -> None:
    """Unknown partitions, topics that are only compacted, and those that are compacted and deleted."""
    compacted, both = topic_name + "-c", topic_name + "-cd"
    create_topic(raw, compacted, cleanup_policy="compact")
    create_topic(raw, both, cleanup_policy="compact,delete")
    wanted = ((compacted, 0, 0), (both, 0, 0), (both, 5, 0), (topic_name, 0, 0))
    assert delete(raw, 2, *wanted) == {
        (compacted, 0): ("POLICY_VIOLATION", -1),
        (both, 0): ("NONE", 0),
        (both, 5): ("UNKNOWN_TOPIC_OR_PARTITION", -1),
        (topic_name, 0): ("UNKNOWN_TOPIC_OR_PARTITION", -1),
    }


def new_producer_id(raw: RawClient) -> int:
    """An id for an idempotent producer; a Kafka that has just started may need a moment for the first one."""
    request = InitProducerIdRequest(transactional_id=None)
    found: list[int] = []

    def error() -> int:
        response = raw.send(request, 4)
        found.append(response.producer_id)
        return int(response.error_code)

    eventually(error, ErrorCode.NONE)
    return found[-1]


def producers(raw: RawClient, topic: str, *partitions: int) -> list[tuple[int, str, list[ProducerState]]]:
    """(partition, error, producers) of a topic's partitions."""
    wanted = TopicRequest(name=topic, partition_indexes=list(partitions))
    (answered,) = raw.send(DescribeProducersRequest(topics=[wanted]), 0).topics
    assert answered.name == topic
    return [
        (each.partition_index, ErrorCode(each.error_code).name, each.active_producers)
        for each in answered.partitions
    ]


def test_describe_producers(raw: RawClient, topic_name: str) -> None:
    """Idempotent producers are remembered with their last sequence and timestamp; others are not."""
    create_topic(raw, topic_name, partitions=2, retention_ms="-1")
    producer_id = new_producer_id(raw)
    produce(raw, topic_name, [T0], partition=0)
    produce(raw, topic_name, [T0, T0 + 9], producer_id=producer_id, producer_epoch=0, base_sequence=0)
    produce(raw, topic_name, [T0 + 3], producer_id=producer_id, producer_epoch=0, base_sequence=2)
    state = ProducerState(
        producer_id=producer_id,
        producer_epoch=0,
        last_sequence=2,
        last_timestamp=T0 + 3,
        coordinator_epoch=-1,
        current_txn_start_offset=-1,
    )
    assert producers(raw, topic_name, 0, 1, 0, 7) == [
        (0, "NONE", [state]),
        (1, "NONE", []),
        (0, "NONE", [state]),
        (7, "UNKNOWN_TOPIC_OR_PARTITION", []),
    ]


def test_producers_of_nothing(raw: RawClient, topic_name: str) -> None:
    """Unknown topics and bad names are told for every partition."""
    assert producers(raw, topic_name, 0, 1) == [
        (0, "UNKNOWN_TOPIC_OR_PARTITION", []),
        (1, "UNKNOWN_TOPIC_OR_PARTITION", []),
    ]
    assert producers(raw, "b ad", 0) == [(0, "INVALID_TOPIC_EXCEPTION", [])]


def log_dir(raw: RawClient, version: int, wanted: dict[str, list[int]] | None) -> DescribeLogDirsResult:
    """What the only log directory holds of these partitions."""
    topics = None
    if wanted is not None:
        topics = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in wanted.items()]
    response = raw.send(DescribeLogDirsRequest(topics=topics), version)
    assert response.error_code == ErrorCode.NONE
    (result,) = response.results
    assert isinstance(result, DescribeLogDirsResult)
    return result


def sizes(result: DescribeLogDirsResult) -> dict[str, dict[int, int]]:
    """Bytes of every partition told; none is a future one or behind."""
    assert not any(
        each.is_future_key or each.offset_lag for topic in result.topics for each in topic.partitions
    )
    return {
        topic.name: {each.partition_index: each.partition_size for each in topic.partitions}
        for topic in result.topics
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_log_dirs(version: int, raw: RawClient, broker: BrokerProcess, topic_name: str) -> None:
    """Sizes grow by the bytes of the batches; what is not there is left out; 4 tells of the volume."""
    create_topic(raw, topic_name, partitions=2)
    everything = log_dir(raw, version, None)
    assert everything.log_dir == str(broker.data_dir)
    assert sizes(everything)[topic_name] == {0: 0, 1: 0}
    produce(raw, topic_name, [T0], partition=1)
    named = log_dir(raw, version, {topic_name: [1, 7], topic_name + "-x": [0]})
    # One batch: 61 bytes of header and a record of 13 bytes, its length included.
    assert sizes(named) == {topic_name: {1: 74}}
    if version >= 4:
        assert 0 < named.usable_bytes <= named.total_bytes
    else:
        assert (named.usable_bytes, named.total_bytes) == (-1, -1)
    assert named.is_cordoned is False
    assert log_dir(raw, version, {}).topics == []
