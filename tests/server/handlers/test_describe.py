"""DescribeTopicPartitions, DescribeLogDirs and DescribeProducers where settings and the disk decide."""

import time
from pathlib import Path

from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, produce
from ottla.testing import Broker
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

T0 = 1_700_000_000_000


def test_a_page_is_never_larger_than_the_broker_allows() -> None:
    """max.request.partition.size.limit bounds what a client may ask for."""
    with Broker(max_request_partition_size_limit=3) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", partitions=5)
        response = raw.send(DescribeTopicPartitionsRequest(response_partition_limit=100), 0)
        assert [partition.partition_index for partition in response.topics[0].partitions] == [0, 1, 2]
        assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("t", 3)


def test_several_log_directories(tmp_path: Path) -> None:
    """Partitions are spread over them, and every directory is described with what it holds."""
    first, second = tmp_path / "a", tmp_path / "b"
    with Broker(data=f"{first},{second}") as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", partitions=4)
        for index in range(4):
            produce(raw, "t", [T0], partition=index)
        results = raw.send(DescribeLogDirsRequest(topics=None), 5).results
        assert [result.log_dir for result in results] == [str(first), str(second)]
        held = [
            {
                each.partition_index: each.partition_size
                for topic in result.topics
                for each in topic.partitions
            }
            for result in results
        ]
        assert held[0].keys() | held[1].keys() == {0, 1, 2, 3}
        assert len(held[0]) == len(held[1]) == 2
        on_disk = {
            int(log.parent.name.rpartition("-")[2]): log.stat().st_size
            for log in [*first.glob("t-*/*.log"), *second.glob("t-*/*.log")]
        }
        assert held[0] | held[1] == on_disk


def test_producers_are_remembered_across_a_restart(tmp_path: Path) -> None:
    """The state of an idempotent producer is the same after the broker came back."""
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", retention_ms="-1")
        producer_id = raw.send(InitProducerIdRequest(transactional_id=None), 4).producer_id
        now_ms = time.time_ns() // 1_000_000  # one that was quiet for a day would be forgotten
        produce(raw, "t", [now_ms, now_ms], producer_id=producer_id, producer_epoch=0, base_sequence=0)
        before = raw.send(request, 0).topics
        assert [each.producer_id for each in before[0].partitions[0].active_producers] == [producer_id]
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        assert raw.send(request, 0).topics == before
