"""Topics and records made with the raw client, for tests that look at single requests."""

from collections.abc import Mapping
from typing import Any

from compat_tests.eventually import PATIENCE_SECONDS, eventually
from compat_tests.raw_client import RawClient
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from ottla.wire.records import Record, build_batch

PRODUCE_VERSION = 9
FETCH_VERSION = 11
CREATE_VERSION = 7
METADATA_VERSION = 12
LIST_OFFSETS_VERSION = 7


def create_topic(raw: RawClient, name: str, partitions: int = 1, **configs: str) -> bytes:
    """Create a topic and wait until every partition is led and serves; returns its id."""
    topic_id = request_topic(raw, name, partitions, configs)
    wait_until_served(raw, name, partitions)
    return topic_id


def request_topic(raw: RawClient, name: str, partitions: int, configs: Mapping[str, str]) -> bytes:
    """Have a topic created, without waiting until it serves; returns its id."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )
    (result,) = raw.send(CreateTopicsRequest(topics=[topic]), CREATE_VERSION).topics
    assert result.error_code == ErrorCode.NONE, result.error_message
    return bytes(result.topic_id)


def wait_until_served(
    raw: RawClient, name: str, partitions: int, patience_seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until the leader of every partition answers for it: Kafka tells of a topic before it serves it."""
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=wanted)])

    def errors() -> set[int]:
        (topic,) = raw.send(request, LIST_OFFSETS_VERSION).topics
        return {partition.error_code for partition in topic.partitions}

    eventually(errors, {ErrorCode.NONE}, patience_seconds)
    eventually(lambda: len(describe(raw, name).partitions), partitions, patience_seconds)


def describe(raw: RawClient, name: str) -> MetadataResponseTopic:
    """A topic's metadata; asking does not create it."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = raw.send(request, METADATA_VERSION).topics
    assert isinstance(topic, MetadataResponseTopic)
    return topic


def produce(
    raw: RawClient,
    topic: str,
    timestamps: list[int],
    partition: int = 0,
    value: bytes = b"value",
    **batch: Any,
) -> PartitionProduceResponse:
    """Append one batch with a record for each timestamp."""
    records = [
        Record(offset=number, timestamp=timestamp, key=b"%d" % number, value=value, headers=())
        for number, timestamp in enumerate(timestamps)
    ]
    data = PartitionProduceData(index=partition, records=build_batch(records, **batch))
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    (answered,) = raw.send(request, PRODUCE_VERSION).responses
    (response,) = answered.partition_responses
    assert isinstance(response, PartitionProduceResponse)
    assert response.error_code == ErrorCode.NONE, response.error_message
    return response


def fetch_records(raw: RawClient, topic: str, offset: int = 0, partition: int = 0) -> bytes:
    """The bytes that a plain Fetch returns from an offset on."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
    (answered,) = raw.send(request, FETCH_VERSION).responses
    (response,) = answered.partitions
    assert response.error_code == ErrorCode.NONE
    return bytes(response.records)
