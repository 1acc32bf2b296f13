"""Reading topics with Spark's Kafka source, as streams and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_demo.names import USERS
from spark_demo.transforms import users

PACKAGES = ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",)


def spark_session(master: str | None, name: str) -> SparkSession:
    """A session that has Spark's Kafka source; the master may be given by spark-submit instead."""
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.jars.packages", ",".join(PACKAGES))
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.streaming.metricsEnabled", "true")
    )
    if master is not None:
        builder = builder.master(master)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@dataclass(frozen=True)
class Kafka:
    """A cluster, seen from Spark."""

    spark: SparkSession
    bootstrap: str

    def stream(self, topic: str, **options: str) -> DataFrame:
        """A topic from its beginning, for ever."""
        reader = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.bootstrap)
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        return reader.option("includeHeaders", "true").options(**options).load()

    def table(self, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
        """What a topic holds now, or between the offsets that the options name."""
        reader = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.bootstrap)
        return (
            reader.option("subscribe", topic)
            .option("includeHeaders", "true")
            .options(**(options or {}))
            .load()
        )

    def latest_by_key(self, topic: str) -> DataFrame:
        """The last record of each key, as compaction would leave them."""
        latest = self.table(topic).groupBy("key").agg(f.max_by("value", "offset").alias("value"))
        return latest.select(f.col("key").cast("string"), f.col("value").cast("string"))

    def users(self) -> DataFrame:
        """The table of users."""
        return users(self.table(USERS))
