"""One Spark for the whole run, and ways to fill and read topics with it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from compat_tests.kafka.jars import java_executable, java_version
from spark_demo.tables import QUICK_START, spark_session

Write = Callable[..., None]
ReadBatch = Callable[..., DataFrame]
ReadStream = Callable[..., DataFrame]
StartStream = Callable[..., "ToFiles"]
Consume = Callable[..., list[str]]

JAVAS = range(17, 24)  # later ones lack what Hadoop's classes ask for
PATIENCE_SECONDS = 60  # Spark is in no hurry


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves it to the garbage collector to close its sockets to Java."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session")
def java_home() -> str:
    """Leads Spark to a Java that it can use; what needs one is skipped where there is none."""
    java = Path(java_executable()).resolve()
    if java_version(str(java)) not in JAVAS:
        pytest.skip(
            f"Spark {pyspark.__version__} needs a Java of {JAVAS.start} to {JAVAS.stop - 1}; {java} is none"
        )
    os.environ["JAVA_HOME"] = str(java.parents[1])
    return os.environ["JAVA_HOME"]


@pytest.fixture(scope="session")
def spark(java_home: str) -> Iterator[SparkSession]:
    """Spark on this machine, with its Kafka source."""
    session = spark_session("local[2]", "compat_tests", QUICK_START)
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
        headers: dict[str, str | bytes | None] | None = None,
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


@dataclass(frozen=True)
class ToFiles:
    """A stream that is written into files, and what the files hold so far."""

    query: StreamingQuery
    spark: SparkSession
    path: str

    def found(self) -> list[str]:
        """The values in the files once everything there is has been read."""
        self.query.processAllAvailable()
        return values(self.spark.read.parquet(self.path))

    def rows_read(self) -> list[int]:
        """How many rows each batch had."""
        return [json.loads(progress.json)["numInputRows"] for progress in self.query.recentProgress]


@pytest.fixture
def start_stream(tmp_path: Path) -> Iterator[StartStream]:
    """Starts a stream into files; it runs until the end of the test at the latest."""
    started: list[StreamingQuery] = []

    def start(stream: DataFrame, name: str = "out") -> ToFiles:
        writer = _writer(stream, tmp_path / name)
        started.append(writer.start())
        return ToFiles(started[-1], stream.sparkSession, str(tmp_path / name))

    yield start
    for query in started:
        query.stop()


@pytest.fixture
def consume(tmp_path: Path) -> Consume:
    """Runs a stream into files until it has read all that is there, and returns everything the files hold.

    Called again it goes on from its checkpoint, or from that of `start_stream`.
    """

    def run(stream: DataFrame, name: str = "out") -> list[str]:
        _writer(stream, tmp_path / name).trigger(availableNow=True).start().awaitTermination()
        return values(stream.sparkSession.read.parquet(str(tmp_path / name)))

    return run


def _writer(stream: DataFrame, path: Path) -> DataStreamWriter:
    rows = stream.selectExpr("CAST(value AS STRING) AS value").writeStream.format("parquet")
    return rows.option("path", str(path)).option("checkpointLocation", f"{path}-checkpoint")


def numbered(first: int, end: int) -> list[str]:
    """Values whose order is that of their numbers."""
    return [f"{number:04}" for number in range(first, end)]


def values(rows: DataFrame) -> list[str]:
    """The values of records, in order."""
    texts = [row[0] for row in rows.selectExpr("CAST(value AS STRING)").collect()]
    return sorted(texts, key=lambda text: (text is None, text))


def offsets(topic: str, **partitions: int) -> str:
    """The JSON in which Spark takes offsets: `offsets(topic, p0=3, p1=-2)`."""
    return json.dumps({topic: {name.removeprefix("p"): offset for name, offset in partitions.items()}})
