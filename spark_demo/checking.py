"""The batch job that goes over the history again, and whether the stream came to the same results, to the record.

It reads the history twice: by the offsets at which the streams ended, for all results, and by timestamps, for a
stretch in the middle.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_demo import names
from spark_demo.events import ALLOWED_LATENESS_MS
from spark_demo.formats import Format, Json
from spark_demo.tables import Kafka
from spark_demo.transforms import (
    CLOCK_SKEW_MS,
    as_records,
    clean_events,
    dead_letters,
    judge,
    pages_per_minute,
    sessions,
)

Progress = Mapping[str, Any]

_RECORD = ("partition", "offset", "timestamp", "key", "value", "headers")


@dataclass(frozen=True)
class Check:
    """One comparison; it holds when nothing is missing and nothing is there beside."""

    name: str
    expected: int
    missing: int
    extra: int

    @property
    def holds(self) -> bool:
        return self.expected > 0 and self.missing == 0 and self.extra == 0


def check(kafka: Kafka, out: str, written: Format, last: Mapping[str, Progress]) -> Iterator[Check]:
    """Compare everything that the queries wrote, given the last progress of each."""
    ends = {name: progress["sources"][0]["endOffset"] for name, progress in last.items()}
    if any(end != ends["events"] for end in ends.values()):
        raise RuntimeError(f"the queries ended at different offsets: {ends}")
    options = {"startingOffsets": "earliest", "endingOffsets": json.dumps(ends["events"])}
    history = kafka.table(names.ACTIVITY, options).cache()
    users = kafka.users().cache()
    judged = judge(written.parse(history)).cache()
    clean = clean_events(judged, users).cache()
    yield compare(
        "events, files", clean.drop("headers"), kafka.spark.read.parquet(f"{out}/{names.EVENTS_TABLE}")
    )
    yield _compare_topic(kafka, "events, topic", as_records(clean, names.CLEAN_KEY, written), names.CLEAN)
    yield _compare_topic(kafka, "dead letters, topic", dead_letters(judged), names.DEAD_LETTERS)
    # Kept, since Spark would otherwise look at the end of a session before it has put its events together.
    visits = sessions(clean).cache()
    found = kafka.spark.read.parquet(f"{out}/{names.SESSIONS_TABLE}")
    yield compare("sessions, files", _closed(visits, last["sessions"]), found)
    pages = _closed(pages_per_minute(clean), last["pages per minute"])
    yield _compare_topic(
        kafka, "pages per minute, topic", as_records(pages, names.PAGES_KEY, Json()), names.PAGES
    )
    yield from _check_by_time(kafka, written, history, users)


def _check_by_time(kafka: Kafka, written: Format, history: DataFrame, users: DataFrame) -> Iterator[Check]:
    """The middle half of the history, found by its timestamps: its records, and what the stream made of them."""
    at = f.unix_millis("timestamp")
    [(first_ms, last_ms)] = history.agg(f.min(at), f.max(at)).collect()
    quarter = (last_ms - first_ms) // 4
    start_ms, end_ms = first_ms + quarter, last_ms - quarter
    partitions = [str(row[0]) for row in history.select("partition").distinct().collect()]
    options = {
        f"{end}OffsetsByTimestamp": json.dumps({names.ACTIVITY: dict.fromkeys(partitions, time_ms)})
        for end, time_ms in (("starting", start_ms), ("ending", end_ms))
    }
    stretch = kafka.table(names.ACTIVITY, options).cache()
    expected = history.where((at >= start_ms) & (at < end_ms))
    yield compare("by time: records", expected.select(*_RECORD), stretch.select(*_RECORD))
    # Minutes of which every event arrived within the stretch.
    whole = (f.unix_millis("start") >= start_ms + CLOCK_SKEW_MS) & (
        f.unix_millis("end") <= end_ms - ALLOWED_LATENESS_MS
    )
    pages = pages_per_minute(clean_events(judge(written.parse(stretch)), users)).where(whole)
    row = f.from_json(f.col("value").cast("string"), pages.schema).alias("row")
    found = kafka.latest_by_key(names.PAGES).select(row).select("row.*").where(whole)
    yield compare("by time: pages per minute", pages, found)


def _closed(windows: DataFrame, progress: Progress) -> DataFrame:
    """The windows that the stream had to write: those that no event can change any more."""
    return windows.where(f.col("end") <= f.lit(progress["eventTime"]["watermark"]).cast("timestamp"))


def _compare_topic(kafka: Kafka, name: str, expected: DataFrame, topic: str) -> Check:
    wanted = expected.select(f.col("key").cast("string"), f.col("value").cast("binary"))
    return compare(name, wanted, kafka.latest_by_key(topic))


def compare(name: str, expected: DataFrame, found: DataFrame) -> Check:
    """Whether both hold the same rows equally often, in one pass over them."""
    columns = sorted(expected.columns)
    wanted, got = (
        rows.select(*columns, f.lit(each).alias("_wanted"), f.lit(1 - each).alias("_found"))
        for rows, each in ((expected, 1), (found, 0))
    )
    sums = (
        wanted.union(got)
        .groupBy(*columns)
        .agg(f.sum("_wanted").alias("wanted"), f.sum("_found").alias("found"))
    )
    zero = f.lit(0)
    [row] = sums.agg(
        f.sum("wanted").alias("expected"),
        f.sum(f.greatest(f.col("wanted") - f.col("found"), zero)).alias("missing"),
        f.sum(f.greatest(f.col("found") - f.col("wanted"), zero)).alias("extra"),
    ).collect()
    return Check(name, row["expected"] or 0, row["missing"] or 0, row["extra"] or 0)
