"""Streams: rates, resuming, transactions, partitions and topics that come and go, lost data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient, TopicPartition
from pyspark.sql import SparkSession

from compat_tests.conftest import NewTopic
from compat_tests.eventually import eventually
from compat_tests.spark.conftest import Consume, ReadBatch, ReadStream, Write, values


def numbered(first: int, end: int) -> list[str]:
    return [f"{number:04}" for number in range(first, end)]


def test_available_now_in_slices(
    read_stream: ReadStream, write: Write, new_topic: NewTopic, tmp_path: Path
) -> None:
    """maxOffsetsPerTrigger cuts what is there into batches; AvailableNow ends after the last."""
    topic = new_topic(partitions=2)
    write(topic, numbered(0, 50))
    write(topic, numbered(50, 100), partition=1)
    query = (
        read_stream(subscribe=topic, maxOffsetsPerTrigger="30")
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = [json.loads(progress.json)["numInputRows"] for progress in query.recentProgress]
    assert sum(rows) == 100
    assert max(rows) <= 31  # Spark rounds up for every partition
    assert len(rows) >= 4


def test_resume_from_a_checkpoint(
    read_stream: ReadStream, consume: Consume, write: Write, new_topic: NewTopic
) -> None:
    """What was read is not read again, and what came meanwhile is."""
    topic = new_topic(partitions=2)
    stream = read_stream(subscribe=topic)
    write(topic, numbered(0, 20))
    assert consume(stream) == numbered(0, 20)
    write(topic, numbered(20, 30), partition=1)
    assert consume(stream) == numbered(0, 30)
    assert consume(stream) == numbered(0, 30)


def test_latest_sees_only_what_comes(
    read_stream: ReadStream, write: Write, new_topic: NewTopic, spark: SparkSession
) -> None:
    """A stream that begins at the end."""
    topic = new_topic()
    write(topic, ["before"])
    query = (
        read_stream(subscribe=topic, startingOffsets="latest")
        .selectExpr("CAST(value AS STRING) AS value")
        .writeStream.format("memory")
        .queryName("latest")
        .start()
    )
    try:
        query.processAllAvailable()
        write(topic, ["after"])
        query.processAllAvailable()
        assert values(spark.table("latest")) == ["after"]
    finally:
        query.stop()


def test_committed_records_only(
    read_stream: ReadStream,
    read_batch: ReadBatch,
    consume: Consume,
    new_topic: NewTopic,
    bootstrap: str,
    topic_name: str,
) -> None:
    """read_committed leaves out what was aborted, and passes a partition that ends in a marker."""
    topic = new_topic()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic_name})
    producer.init_transactions(30)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction) * 2):
        producer.begin_transaction()
        for value in numbered(10 * number, 10 * number + 10):
            producer.produce(topic, value)
        producer.flush(30)  # an abort drops what is not sent
        end(30)
    committed = numbered(0, 10) + numbered(20, 30)
    assert values(read_batch(subscribe=topic, kafka_isolation_level="read_committed")) == committed
    assert len(values(read_batch(subscribe=topic))) == 40
    assert consume(read_stream(subscribe=topic, kafka_isolation_level="read_committed")) == committed


@pytest.mark.parametrize("fail", ["true", "false"])
def test_deleted_records(
    fail: str,
    read_stream: ReadStream,
    consume: Consume,
    write: Write,
    new_topic: NewTopic,
    admin: KafkaAdminClient,
) -> None:
    """Records that were deleted before they were read: an error, or they are passed over."""
    topic = new_topic()
    stream = read_stream(subscribe=topic, failOnDataLoss=fail)
    write(topic, numbered(0, 10))
    assert consume(stream) == numbered(0, 10)
    write(topic, numbered(10, 20))
    admin.delete_records({TopicPartition(topic, 0): 15})
    if fail == "true":
        with pytest.raises(Exception, match=r"(?i)data"):
            consume(stream)
    else:
        assert consume(stream) == numbered(0, 10) + numbered(15, 20)


def test_a_topic_made_anew(
    read_stream: ReadStream,
    consume: Consume,
    write: Write,
    new_topic: NewTopic,
    admin: KafkaAdminClient,
) -> None:
    """A topic that is deleted and made again begins at 0, and a stream that may lose data reads it."""
    topic = new_topic()
    stream = read_stream(subscribe=topic, failOnDataLoss="false")
    write(topic, numbered(0, 10))
    assert consume(stream) == numbered(0, 10)
    admin.delete_topics([topic])
    eventually(lambda: topic in admin.list_topics(), False)
    new_topic()
    write(topic, numbered(100, 115))
    assert consume(stream) == numbered(0, 10) + numbered(110, 115)  # from the offset it had


def test_partitions_that_join(
    read_stream: ReadStream,
    consume: Consume,
    write: Write,
    new_topic: NewTopic,
    admin: KafkaAdminClient,
) -> None:
    """A partition made while the stream is known is read from its beginning."""
    topic = new_topic()
    stream = read_stream(subscribe=topic)
    write(topic, numbered(0, 10))
    assert consume(stream) == numbered(0, 10)
    admin.create_partitions({topic: 3})
    write(topic, numbered(10, 20), partition=2)
    assert consume(stream) == numbered(0, 20)


def test_sink(
    spark: SparkSession, read_batch: ReadBatch, read_stream: ReadStream, new_topic: NewTopic, bootstrap: str
) -> None:
    """Spark's producer is idempotent; keys, headers and partitions are as told."""
    topic = new_topic(partitions=2)
    rows = spark.range(100).selectExpr(
        "CAST(id AS STRING) AS key",
        "lpad(CAST(id AS STRING), 4, '0') AS value",
        "CAST(id % 2 AS INT) AS partition",
        "array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))) AS headers",
    )
    (
        rows.write.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("includeHeaders", "true")
        .save()
    )
    found = read_batch(subscribe=topic, includeHeaders="true").collect()
    assert sorted(bytes(row.value).decode() for row in found) == numbered(0, 100)
    assert all(int(row.value) % 2 == row.partition for row in found)
    assert {(row.headers[0].key, bytes(row.headers[0].value)) for row in found} == {("h", b"x")}
