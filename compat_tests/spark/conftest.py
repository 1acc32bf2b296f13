"""One Spark for the whole run, and ways to fill and read topics with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from spark_demo.tables import spark_session

Write = Callable[..., None]
ReadBatch = Callable[..., DataFrame]
ReadStream = Callable[..., DataFrame]
Consume = Callable[..., list[str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves it to the garbage collector to close its sockets to Java."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark on this machine, with its Kafka source."""
    session = spark_session("local[2]", "compat_tests")
    yield session
    session.stop()


@pytest.fixture
def write(bootstrap: str) -> Write:
    """Sends values to a partition: `write(topic, ["a", "b"], partition=1, timestamp_ms=5)`."""

    def send(
        topic: str,
        values: Sequence[str | None],
        *,
        partition: int = 0,
        timestamp_ms: int = 0,
        key: str | None = None,
        headers: dict[str, bytes] | None = None,
    ) -> None:
        failures: list[str] = []
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        for value in values:
            producer.produce(
                topic,
                None if value is None else value.encode(),
                key,
                partition,
                headers=headers,
                timestamp=timestamp_ms,
                on_delivery=lambda error, _: failures.append(str(error)) if error else None,
            )
        assert producer.flush(30) == 0
        assert failures == []

    return send


@pytest.fixture
def read_batch(spark: SparkSession, bootstrap: str) -> ReadBatch:
    """A table of what topics hold: `read_batch(subscribe=topic, startingOffsets="earliest")`."""

    def read(**options: str) -> DataFrame:
        return spark.read.format("kafka").options(**_all(bootstrap, options)).load()

    return read


@pytest.fixture
def read_stream(spark: SparkSession, bootstrap: str) -> ReadStream:
    """A stream of topics, from their beginning unless told otherwise."""

    def read(**options: str) -> DataFrame:
        reader: DataStreamReader = spark.readStream.format("kafka")
        return reader.options(**{"startingOffsets": "earliest", **_all(bootstrap, options)}).load()

    return read


def _all(bootstrap: str, options: dict[str, str]) -> dict[str, str]:
    """Options of the consumer carry their prefix; an underscore stands for a dot in them."""
    named = {
        name.replace("_", ".") if name.startswith("kafka_") else name: value
        for name, value in options.items()
    }
    return {"kafka.bootstrap.servers": bootstrap, **named}


@pytest.fixture
def consume(tmp_path: Path) -> Consume:
    """Runs a stream into files until it has read all that is there, and returns everything the files hold.

    Called again it goes on from its checkpoint.
    """

    def run(stream: DataFrame, name: str = "out") -> list[str]:
        query = (
            stream.selectExpr("CAST(value AS STRING) AS value")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / name))
            .option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return values(stream.sparkSession.read.parquet(str(tmp_path / name)))

    return run


def values(rows: DataFrame) -> list[str]:
    """The values of records, in order."""
    texts = [row[0] for row in rows.selectExpr("CAST(value AS STRING)").collect()]
    return sorted(texts, key=lambda text: (text is None, text))


def offsets(topic: str, **partitions: int) -> str:
    """The JSON in which Spark takes offsets: `offsets(topic, p0=3, p1=-2)`."""
    return json.dumps({topic: {name.removeprefix("p"): offset for name, offset in partitions.items()}})
