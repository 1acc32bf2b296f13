"""Streams: where they begin, how much a batch takes, stopping and resuming, transactions, and the sink."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from compat_tests.conftest import NewTopic
from compat_tests.eventually import eventually
from compat_tests.spark.conftest import (
    PATIENCE_SECONDS,
    Consume,
    ReadBatch,
    ReadStream,
    StartStream,
    Write,
    numbered,
    offsets,
    values,
)


@pytest.fixture
def topic(new_topic: NewTopic, write: Write) -> str:
    """Two partitions: 0000 to 0009 at times 1,000 to 10,000, and 0010 to 0019 likewise."""
    name = new_topic(partitions=2)
    for partition in range(2):
        for number in range(10):
            value = numbered(10 * partition + number, 10 * partition + number + 1)
            write(name, value, partition=partition, timestamp_ms=1_000 * (number + 1))
    return name


def test_begins_at_offsets(read_stream: ReadStream, consume: Consume, topic: str) -> None:
    """Offsets as JSON, with -2 for the beginning of a partition."""
    stream = read_stream(subscribe=topic, startingOffsets=offsets(topic, p0=7, p1=-2))
    assert consume(stream) == numbered(7, 20)


def test_begins_at_a_time(read_stream: ReadStream, consume: Consume, topic: str) -> None:
    """Times for each partition, and one for all."""
    times = json.dumps({topic: {"0": 8_500, "1": 3_000}})
    by_partition = consume(read_stream(subscribe=topic, startingOffsetsByTimestamp=times), "by-partition")
    assert by_partition == numbered(8, 10) + numbered(12, 20)
    assert consume(read_stream(subscribe=topic, startingTimestamp="9500"), "for-all") == ["0009", "0019"]


def test_patterns_and_assignments(read_stream: ReadStream, consume: Consume, topic: str) -> None:
    """Topics by regular expression, single partitions, more tasks than partitions, and headers."""
    stream = read_stream(subscribePattern=f"{topic[:-1]}.", minPartitions="5", includeHeaders="true")
    assert consume(stream, "pattern") == numbered(0, 20)
    assert consume(read_stream(assign=json.dumps({topic: [1]})), "assigned") == numbered(10, 20)


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


def test_stop_in_the_middle(
    read_stream: ReadStream, start_stream: StartStream, consume: Consume, write: Write, new_topic: NewTopic
) -> None:
    """A stream that is stopped with more before it goes on where its checkpoint says: nothing lost or doubled."""
    topic = new_topic(partitions=2)
    write(topic, numbered(0, 500))
    write(topic, numbered(500, 1_000), partition=1)
    running = start_stream(read_stream(subscribe=topic, maxOffsetsPerTrigger="10"))
    eventually(lambda: len(running.rows_read()) >= 2, True, PATIENCE_SECONDS)
    running.query.stop()
    assert sum(running.rows_read()) < 1_000
    write(topic, numbered(1_000, 1_010))
    assert consume(read_stream(subscribe=topic)) == numbered(0, 1_010)


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
    """read_committed leaves out what was aborted, passes a partition that ends in a marker, and waits for the rest."""
    topic = new_topic()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic_name})
    producer.init_transactions(30)
    stream = read_stream(subscribe=topic, kafka_isolation_level="read_committed")
    committed: list[str] = []
    for number in range(4):
        producer.begin_transaction()
        for value in numbered(10 * number, 10 * number + 10):
            producer.produce(topic, value)
        producer.flush(30)  # an abort drops what is not sent
        if number == 1:
            assert consume(stream) == committed  # a transaction is open
        if number % 2 == 0:
            producer.commit_transaction(30)
            committed += numbered(10 * number, 10 * number + 10)
        else:
            producer.abort_transaction(30)
        if number > 1:
            assert values(read_batch(subscribe=topic, kafka_isolation_level="read_committed")) == committed
            assert consume(stream) == committed
    assert len(values(read_batch(subscribe=topic))) == 40


def test_sink(spark: SparkSession, read_batch: ReadBatch, new_topic: NewTopic, bootstrap: str) -> None:
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
