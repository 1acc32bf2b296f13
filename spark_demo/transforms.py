"""What happens to events, as functions of data frames: the same ones for the stream and for the batch that checks it.

Whether an event comes too late is decided by its record alone, from when it happened and when it arrived. The stream's
watermark leaves more time than that, so it never drops an event that counts, and a batch finds the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from spark_demo.events import ALLOWED_LATENESS_MS, EVENT_TYPES, LATE_MS
from spark_demo.formats import Format

WATERMARK = "10 minutes"
SESSION_GAP = "5 minutes"
PAGE_WINDOW = "1 minute"

TOO_LATE = "too late"
CLOCK_SKEW_MS = 60_000
_USER = t.StructType(
    [
        t.StructField("user_id", t.StringType()),
        t.StructField("country", t.StringType()),
        t.StructField("paying", t.BooleanType()),
    ]
)


def judge(parsed: DataFrame) -> DataFrame:
    """Add `problem`: why a record is no event that counts, or null; and `late`, for one that only just counts."""
    event_ms, arrived_ms = f.col("event.event_time_ms"), f.unix_millis("timestamp")
    problems: list[tuple[Column, str]] = [
        (~f.col("fits"), "does not fit the schema"),
        (f.col("event.event_id").isNull(), "event_id is missing"),
        (f.col("event.user_id").isNull(), "user_id is missing"),
        (f.col("event.type").isNull() | ~f.col("event.type").isin(*EVENT_TYPES), "type is unknown"),
        (event_ms.isNull(), "event_time_ms is missing"),
        (event_ms > arrived_ms + CLOCK_SKEW_MS, "happened after it arrived"),
        (event_ms < arrived_ms - ALLOWED_LATENESS_MS, TOO_LATE),
    ]
    problem = f.lit(None).cast("string")
    for holds, words in reversed(problems):
        problem = f.when(holds, words).otherwise(problem)
    judged = parsed.withColumn("problem", problem)
    return judged.withColumn("late", f.col("problem").isNull() & (event_ms < arrived_ms - LATE_MS))


def dead_letters(judged: DataFrame) -> DataFrame:
    """Rows for the dead-letter topic: the record as it was, with where it came from and why it is here."""
    origin = f.concat_ws("-", "topic", "partition", "offset")
    return judged.where("problem IS NOT NULL").select(
        origin.alias("key"),
        "value",
        f.array(_header("problem", f.col("problem")), _header("origin", origin)).alias("headers"),
    )


def _header(name: str, text: Column) -> Column:
    return f.struct(f.lit(name).alias("key"), text.cast("binary").alias("value"))


def events(judged: DataFrame) -> DataFrame:
    """The events that count, in columns; some of them twice."""
    return judged.where("problem IS NULL").select(
        "event.event_id",
        "event.user_id",
        "event.type",
        "event.page",
        "event.query",
        f.timestamp_millis("event.event_time_ms").alias("event_time"),
        "headers",
    )


def once_each(found: DataFrame) -> DataFrame:
    """Every event once. A repeated one differs from the first in nothing but when it was sent."""
    if found.isStreaming:
        return found.withWatermark("event_time", WATERMARK).dropDuplicatesWithinWatermark(["event_id"])
    return found.dropDuplicates(["event_id"])


def users(changes: DataFrame) -> DataFrame:
    """The latest state of each user, from records of the compacted topic."""
    latest = changes.groupBy("key").agg(f.max_by("value", "offset").alias("value"))
    known = f.from_json(f.col("value").cast("string"), _USER)
    return latest.where("value IS NOT NULL").select(known.alias("user")).select("user.*")


def with_users(found: DataFrame, known: DataFrame) -> DataFrame:
    """Add what is known of the user."""
    return (
        found.join(known, "user_id", "left")
        .withColumn("country", f.coalesce("country", f.lit("unknown")))
        .withColumn("paying", f.coalesce("paying", f.lit(False)))
    )


def clean_events(judged: DataFrame, known: DataFrame) -> DataFrame:
    """Events that count, once each, with their users."""
    return with_users(once_each(events(judged)), known)


def pages_per_minute(clean: DataFrame) -> DataFrame:
    """How often each page was looked at from each country, by the minute."""
    return (
        clean.where("type = 'view'")
        .groupBy(f.window("event_time", PAGE_WINDOW), "page", "country")
        .agg(f.count("*").alias("views"), f.approx_count_distinct("user_id").alias("visitors"))
        .select("window.start", "window.end", "page", "country", "views", "visitors")
    )


def sessions(clean: DataFrame) -> DataFrame:
    """What a user did without a longer pause."""
    return (
        clean.groupBy(f.session_window("event_time", SESSION_GAP), "user_id")
        .agg(
            f.count("*").alias("events"),
            f.count_if(f.col("type") == "click").alias("clicks"),
            f.max("country").alias("country"),
        )
        .select("session_window.start", "session_window.end", "user_id", "events", "clicks", "country")
    )


def as_records(rows: DataFrame, key: Sequence[str], written: Format) -> DataFrame:
    """Rows for a topic: a key that names the result, and the row as the value."""
    columns = [column for column in rows.columns if column != "headers"]
    record = [f.concat_ws("|", *key).alias("key"), written.value(columns).alias("value")]
    return rows.select(*record, "headers") if "headers" in rows.columns else rows.select(*record)
