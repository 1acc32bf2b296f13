"""A stream on a broker that is killed and started again."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from compat_tests.conftest import BROKERS
from compat_tests.eventually import eventually
from compat_tests.spark.conftest import PATIENCE_SECONDS, StartStream, numbered

RECORDS = 3_000


@pytest.mark.parametrize("name", BROKERS)
def test_kill_nine_in_the_middle(name: str, spark: SparkSession, start_stream: StartStream) -> None:
    """The stream waits for the broker, and has each acknowledged record once in the end."""
    with BROKERS[name]() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("subscribe", "activity")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", RECORDS // 10)
            .load()
        )
        _send(producer, 0, RECORDS // 2)
        running = start_stream(stream)
        eventually(lambda: len(running.rows_read()) >= 1, True, PATIENCE_SECONDS)
        assert sum(running.rows_read()) < RECORDS // 2
        broker.kill()
        broker.start()
        _send(producer, RECORDS // 2, RECORDS)
        assert running.found() == numbered(0, RECORDS)
        assert running.query.exception() is None
        running.query.stop()  # without a broker it would take a minute


def _send(producer: Producer, first: int, end: int) -> None:
    failures: list[str] = []
    for number in range(first, end):
        producer.produce(
            "activity",
            f"{number:04}",
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
    assert producer.flush(60) == 0
    assert failures == []
