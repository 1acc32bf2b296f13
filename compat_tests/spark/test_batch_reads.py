"""Batch reads: which records a table holds, by offsets, by time, by pattern and by assignment."""

from __future__ import annotations

import json

import pytest
from kafka import KafkaAdminClient

from compat_tests.conftest import NewTopic
from compat_tests.spark.conftest import ReadBatch, Write, offsets, values


@pytest.fixture
def topic(new_topic: NewTopic, write: Write) -> str:
    """Two partitions: 0 to 9 at times 1,000 to 10,000, and ten to nineteen likewise."""
    name = new_topic(partitions=2)
    for partition in range(2):
        for number in range(10):
            write(name, [f"{partition}{number}"], partition=partition, timestamp_ms=1_000 * (number + 1))
    return name


def of_partitions(first: range, second: range) -> list[str]:
    return [f"0{number}" for number in first] + [f"1{number}" for number in second]


def test_everything(read_batch: ReadBatch, topic: str) -> None:
    """From earliest to latest, which are the defaults of a batch."""
    assert values(read_batch(subscribe=topic)) == of_partitions(range(10), range(10))


def test_offsets(read_batch: ReadBatch, topic: str) -> None:
    """Offsets as JSON, with -2 and -1 for the ends."""
    rows = read_batch(
        subscribe=topic,
        startingOffsets=offsets(topic, p0=3, p1=-2),
        endingOffsets=offsets(topic, p0=-1, p1=4),
    )
    assert values(rows) == of_partitions(range(3, 10), range(4))


def test_timestamps(read_batch: ReadBatch, topic: str) -> None:
    """The first record at or after a time, for both ends."""
    times = json.dumps({topic: {"0": 2_500, "1": 9_000}})
    ends = json.dumps({topic: {"0": 8_000, "1": 99_000}})
    rows = read_batch(subscribe=topic, startingOffsetsByTimestamp=times, endingOffsetsByTimestamp=ends)
    assert values(rows) == of_partitions(range(2, 7), range(8, 10))
    rows = read_batch(subscribe=topic, startingTimestamp="4000", endingTimestamp="6000")
    assert values(rows) == of_partitions(range(3, 5), range(3, 5))


def test_a_time_after_the_end(read_batch: ReadBatch, topic: str) -> None:
    """A start that no record has is an error, or the end if so asked."""
    late = json.dumps({topic: {"0": 99_000, "1": 99_000}})
    with pytest.raises(Exception, match=r"(?i)offset"):
        read_batch(subscribe=topic, startingOffsetsByTimestamp=late).count()
    rows = read_batch(
        subscribe=topic, startingOffsetsByTimestamp=late, startingOffsetsByTimestampStrategy="latest"
    )
    assert values(rows) == []


def test_several_topics(read_batch: ReadBatch, write: Write, topic: str, admin: KafkaAdminClient) -> None:
    """Topics by a list and by a regular expression."""
    both = [*of_partitions(range(10), range(10)), "20"]
    others = {f"{topic}-b": "20", f"not-{topic}": "30"}
    wanted = {"num_partitions": 1, "replication_factor": 1}
    admin.create_topics(dict.fromkeys(others, wanted), wait_for_metadata=True)
    for other, value in others.items():
        write(other, [value])
    assert values(read_batch(subscribe=f"{topic},{topic}-b")) == both
    assert values(read_batch(subscribePattern=f"^{topic}.*")) == both


def test_assignment(read_batch: ReadBatch, topic: str) -> None:
    """Single partitions."""
    assigned = read_batch(assign=json.dumps({topic: [1]}))
    assert values(assigned) == of_partitions(range(0), range(10))


def test_more_tasks_than_partitions(read_batch: ReadBatch, topic: str) -> None:
    """minPartitions reads from the middle of partitions, and of batches."""
    rows = read_batch(subscribe=topic, minPartitions="7")
    assert rows.rdd.getNumPartitions() >= 7
    assert values(rows) == of_partitions(range(10), range(10))


def test_all_columns(read_batch: ReadBatch, write: Write, new_topic: NewTopic) -> None:
    """Keys, headers, times, nulls."""
    topic = new_topic()
    write(topic, ["with all"], timestamp_ms=77_000, key="k", headers={"a": b"1", "b": b""})
    write(topic, [None])
    rows = read_batch(subscribe=topic, includeHeaders="true").orderBy("offset").collect()
    assert (bytes(rows[0].key), bytes(rows[0].value)) == (b"k", b"with all")
    assert rows[0].timestamp.timestamp() == 77
    assert [(header.key, bytes(header.value)) for header in rows[0].headers] == [("a", b"1"), ("b", b"")]
    assert (rows[1].key, rows[1].value, rows[1].offset, rows[1].partition) == (None, None, 1, 0)
