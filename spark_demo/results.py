"""What is read back from the outputs for the report: latencies, and the results themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as f

from spark_demo import names
from spark_demo.tables import Kafka

_LONGEST_MINUTES = 55
_BUCKET_MINUTES = 5


@dataclass(frozen=True)
class Results:
    """Figures and rows, ready to be drawn."""

    latency_ms: Sequence[tuple[float, float, float]]  # second, median, 99th percentile
    median_ms: float
    p99_ms: float
    pages: Sequence[tuple[str, float]]
    session_lengths: Sequence[tuple[str, float]]
    problems: Sequence[tuple[str, float]]


def read_results(kafka: Kafka, out: str, started_ms: int) -> Results:
    """Ask Spark. Latencies are those of records that were sent once the run had started."""
    sent, written = _header("sent-at").cast("long"), f.unix_millis("timestamp")
    measured = (
        kafka.table(names.CLEAN)
        .where(sent >= started_ms)
        .select(f.floor((written - started_ms) / 1000).alias("second"), (written - sent).alias("latency"))
        .cache()
    )
    percentiles = (f.percentile("latency", 0.5).alias("p50"), f.percentile("latency", 0.99).alias("p99"))
    latency = measured.groupBy("second").agg(*percentiles).orderBy("second").collect()
    [overall] = measured.agg(*percentiles).collect()
    row = f.from_json(f.col("value").cast("string"), "page string, views long").alias("row")
    pages = (
        kafka.latest_by_key(names.PAGES)
        .select(row)
        .groupBy("row.page")
        .agg(f.sum("row.views").alias("views"))
        .orderBy(f.desc("views"), "page")
        .limit(10)
        .collect()
    )
    minutes = (f.unix_seconds("end") - f.unix_seconds("start")) / 60
    bucket = f.least(f.floor(minutes / _BUCKET_MINUTES) * _BUCKET_MINUTES, f.lit(_LONGEST_MINUTES))
    sessions = kafka.spark.read.parquet(f"{out}/{names.SESSIONS_TABLE}")
    lengths = sessions.groupBy(bucket.alias("minutes")).count().orderBy("minutes").collect()
    problem = _header("problem").alias("problem")
    problems = kafka.table(names.DEAD_LETTERS).groupBy(problem).count().orderBy(f.desc("count")).collect()
    return Results(
        [(row["second"], row["p50"], row["p99"]) for row in latency],
        overall["p50"],
        overall["p99"],
        [(row["page"], row["views"]) for row in pages],
        [(_range(row["minutes"]), row["count"]) for row in lengths],
        [(row["problem"], row["count"]) for row in problems],
    )


def _header(name: str) -> Column:
    return f.expr(f"filter(headers, h -> h.key = '{name}')[0].value").cast("string")


def _range(minutes: int) -> str:
    if minutes == _LONGEST_MINUTES:
        return f"{minutes} min or more"
    return f"{minutes} to {minutes + _BUCKET_MINUTES} min"
