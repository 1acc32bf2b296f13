"""Reading topics with Spark's Kafka source, as streams and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_demo.names import USERS
from spark_demo.transforms import users

PACKAGES = tuple(
    f"org.apache.spark:{name}_2.13:{pyspark.__version__}" for name in ("spark-sql-kafka-0-10", "spark-avro")
)
# For a short run on one machine: what a better compiler would gain is less than what it costs. The quick one alone
# would have 48 MB for its code, which the queries fill, and then it compiles no more.
QUICK_START = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    " -XX:+UseSerialGC -Xshare:auto"
}


def spark_session(master: str | None, name: str, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session that has Spark's Kafka source; the master may be given by spark-submit instead."""
    settings = {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **(conf or {}),
    }
    builder = SparkSession.builder.appName(name)
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    return (builder if master is None else builder.master(master)).getOrCreate()


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
        return latest.select(f.col("key").cast("string"), "value")

    def users(self) -> DataFrame:
        """The table of users."""
        return users(self.table(USERS))
