"""Kafka writes, Ottla reads and goes on, Kafka reads all of it: one directory, nothing lost."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.kafka.real import RealKafka
from ottla.config.topic_config import TopicConfig
from ottla.log_store.directory import LogDirectory
from tests.log_store.batches import NOW_MS, append, batch, producer_batch, values_from

TOPIC = "shared"
CONFIG = TopicConfig(segment_bytes=1 << 20, retention_ms=-1)
RECORDS = 600
START_MS = NOW_MS


def value(number: int) -> bytes:
    return b"%d:" % number + bytes(str(number), "ascii") * (number % 2000)


def produce_to_kafka(bootstrap: str) -> None:
    """Plain and idempotent batches of several codecs, and an aborted and a committed transaction."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = {"segment.bytes": str(1 << 20), "retention.ms": "-1"}
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=settings)])[TOPIC].result(30)
    for part, codec in enumerate(("none", "zstd", "snappy")):
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 5,
                "batch.num.messages": 20,
            }
        )
        for number in range(part * RECORDS // 3, (part + 1) * RECORDS // 3):
            producer.produce(TOPIC, value(number), key=b"k", timestamp=START_MS + number)
        assert producer.flush(60) == 0
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "txn"})
    transactional.init_transactions(60)
    for ends in (transactional.abort_transaction, transactional.commit_transaction):
        transactional.begin_transaction()
        transactional.produce(TOPIC, b"in a transaction")
        transactional.flush(30)
        ends(30)


def consume_from_kafka(bootstrap: str, end: int) -> list[tuple[int, bytes | None]]:
    """What a read_committed consumer sees."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[tuple[int, bytes | None]] = []
    while not found or found[-1][0] < end - 1:
        message = consumer.poll(30)
        assert message is not None, f"nothing more after {found[-1:]}"
        if message.error():
            break
        found.append((message.offset(), message.value()))
    consumer.close()
    return found


@pytest.fixture(scope="module")
def kafka() -> Iterator[RealKafka]:
    """A real Kafka that wrote its part and was stopped."""
    with RealKafka() as running:
        produce_to_kafka(running.bootstrap)
        running.stop()
        yield running


def test_taking_over_and_giving_back(kafka: RealKafka) -> None:
    """Every record of both is where its writer put it, and Kafka sees a clean stop without damage."""
    directory = LogDirectory(kafka.data_dir)
    assert directory.was_clean
    directory.open_logs(lambda topic: CONFIG, now_ms=NOW_MS)
    assert directory.failed == {}
    log = directory.logs[TOPIC, 0]
    assert len(log.segments) > 1
    written = values_from(log, 0)
    assert [data for _, data in written[:RECORDS]] == [value(number) for number in range(RECORDS)]
    assert log.last_stable_offset == log.high_watermark == log.log_end_offset == RECORDS + 4
    found = log.offset_for_timestamp(START_MS + 321)
    assert found is not None
    assert (found.offset, found.timestamp) == (321, START_MS + 321)
    read = log.read(RECORDS, 1 << 20, upto=log.log_end_offset, at_least_one=True)
    [aborted] = log.aborted_transactions(RECORDS, read)
    assert (aborted.first_offset, aborted.last_offset) == (RECORDS, RECORDS + 1)
    assert len(log.producers.producers) == 4
    for number in range(100):
        append(log, batch(b"ottla %d" % number * 100, timestamps=[START_MS + RECORDS + number]))
        append(log, producer_batch(sequence=number, producer_id=900_000))
    end = log.log_end_offset
    assert end == RECORDS + 4 + 200
    expected = [pair for pair in values_from(log, 0) if pair[0] != RECORDS]
    directory.close()

    before = kafka.log_path.stat().st_size
    kafka.start()
    assert consume_from_kafka(kafka.bootstrap, end) == expected
    kafka.stop()
    with open(kafka.log_path) as file:
        file.seek(before)
        said = file.read()
    assert not re.search(rf"(WARN|ERROR).*{TOPIC}-0", said)
    assert "corrupt" not in said.lower()


def test_reading_after_kafka_again(kafka: RealKafka) -> None:
    """What Kafka made of the shared files opens as cleanly as before."""
    directory = LogDirectory(Path(kafka.data_dir))
    assert directory.was_clean
    directory.open_logs(lambda topic: CONFIG, now_ms=NOW_MS)
    log = directory.logs[TOPIC, 0]
    assert log.log_end_offset == RECORDS + 204
    assert log.producers.producers[900_000].last_sequence == 99
    directory.release()
