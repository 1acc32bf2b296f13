"""The streaming queries: each reads the activity by itself and keeps its own place in a checkpoint.

Files are written exactly once, by Spark's file sink and its log. Topics are written at least once, with keys that make
a repetition replace what was written before.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_demo import names
from spark_demo.formats import Format, Json
from spark_demo.tables import Kafka
from spark_demo.transforms import (
    TOO_LATE,
    as_records,
    clean_events,
    dead_letters,
    judge,
    pages_per_minute,
    sessions,
)

TRIGGER = "2 seconds"
QUALITY = "quality"  # what a batch observed of its records
MAX_OFFSETS_PER_TRIGGER = "200000"


def start_queries(kafka: Kafka, out: str, written: Format) -> dict[str, StreamingQuery]:
    """Start them all; results and checkpoints go below `out`, any path that Spark can write."""
    records = kafka.stream(names.ACTIVITY, maxOffsetsPerTrigger=MAX_OFFSETS_PER_TRIGGER)
    judged = judge(written.parse(records)).observe(
        QUALITY,
        f.count_if("late").alias("late"),
        f.count_if(f.col("problem") == TOO_LATE).alias("too_late"),
        f.count_if(f.col("problem") != TOO_LATE).alias("broken"),
    )
    clean = clean_events(judged, kafka.users())
    pages = as_records(pages_per_minute(clean), names.PAGES_KEY, Json())
    queries = {
        "events": _to_files(clean.drop("headers"), out, names.EVENTS_TABLE),
        "sessions": _to_files(sessions(clean), out, names.SESSIONS_TABLE),
        "dead letters": _to_topic(kafka, dead_letters(judged), names.DEAD_LETTERS),
        "clean events": _to_topic(kafka, as_records(clean, names.CLEAN_KEY, written), names.CLEAN),
        "pages per minute": _to_topic(kafka, pages, names.PAGES),
    }
    return {
        name: writer.queryName(name)
        .option("checkpointLocation", f"{out}/checkpoints/{name.replace(' ', '-')}")
        .trigger(processingTime=TRIGGER)
        .start()
        for name, writer in queries.items()
    }


def _to_files(rows: DataFrame, out: str, table: str) -> DataStreamWriter:
    return rows.writeStream.format("parquet").option("path", f"{out}/{table}").outputMode("append")


def _to_topic(kafka: Kafka, records: DataFrame, topic: str) -> DataStreamWriter:
    writer = records.writeStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap)
    return writer.option("topic", topic).option("includeHeaders", "true").outputMode("append")
