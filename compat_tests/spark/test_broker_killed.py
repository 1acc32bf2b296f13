"""A stream on a broker that is killed and started again."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from compat_tests.conftest import BROKERS
from compat_tests.spark.conftest import values

RECORDS = 3_000


@pytest.mark.parametrize("name", BROKERS)
def test_kill_nine_in_the_middle(name: str, spark: SparkSession, tmp_path: Path) -> None:
    """The stream waits for the broker, and has each acknowledged record once in the end."""
    with BROKERS[name]() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("subscribe", "activity")
            .option("startingOffsets", "earliest")
            .load()
        )
        _send(producer, 0, RECORDS // 2)
        query = (
            stream.selectExpr("CAST(value AS STRING) AS value")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            query.processAllAvailable()
            broker.kill()
            broker.start()
            _send(producer, RECORDS // 2, RECORDS)
            query.processAllAvailable()
            assert query.exception() is None
        finally:
            query.stop()
        found = values(spark.read.parquet(str(tmp_path / "out")))
        assert found == [f"{number:05}" for number in range(RECORDS)]


def _send(producer: Producer, first: int, end: int) -> None:
    failures: list[str] = []
    for number in range(first, end):
        producer.produce(
            "activity",
            f"{number:05}",
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
    assert producer.flush(60) == 0
    assert failures == []
