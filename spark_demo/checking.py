"""The batch job that goes over the history again, and whether the stream came to the same results, to the record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_demo import names
from spark_demo.tables import Kafka
from spark_demo.transforms import (
    as_records,
    clean_events,
    dead_letters,
    judge,
    pages_per_minute,
    parse_json,
    sessions,
)

Progress = Mapping[str, Any]


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


def check(kafka: Kafka, out: str, last: Mapping[str, Progress]) -> Iterator[Check]:
    """Compare everything that the queries wrote, given the last progress of each."""
    ends = {name: progress["sources"][0]["endOffset"] for name, progress in last.items()}
    if any(end != ends["events"] for end in ends.values()):
        raise RuntimeError(f"the queries ended at different offsets: {ends}")
    options = {"startingOffsets": "earliest", "endingOffsets": json.dumps(ends["events"])}
    history = kafka.table(names.ACTIVITY, options).cache()
    judged = judge(parse_json(history)).cache()
    clean = clean_events(judged, kafka.users()).cache()
    yield _compare_history(kafka, history)
    yield _compare("events in files", clean.drop("headers"), kafka.spark.read.parquet(f"{out}/tables/events"))
    yield _compare_topic(kafka, "events in a topic", as_records(clean, "event_id"), names.CLEAN)
    yield _compare_topic(kafka, "dead letters", dead_letters(judged), names.DEAD_LETTERS)
    # Kept, since Spark would otherwise look at the end of a session before it has put its events together.
    pages, visits = pages_per_minute(clean).cache(), sessions(clean).cache()
    yield _compare(
        "pages per minute in files",
        _closed(pages, last["pages"]),
        kafka.spark.read.parquet(f"{out}/tables/pages"),
    )
    yield _compare_topic(
        kafka,
        "pages per minute in a topic",
        as_records(_closed(pages, last["page counts"]), "start", "page", "country"),
        names.PAGES,
    )
    yield _compare_topic(
        kafka,
        "sessions in a topic",
        as_records(_closed(visits, last["sessions"]), "start", "user_id"),
        names.SESSIONS,
    )


def _closed(windows: DataFrame, progress: Progress) -> DataFrame:
    """The windows that the stream had to write: those that no event can change any more."""
    return windows.where(f.col("end") <= f.lit(progress["eventTime"]["watermark"]).cast("timestamp"))


def _compare_history(kafka: Kafka, history: DataFrame) -> Check:
    """A stretch of the middle, found by its timestamps, is what the same stretch of all records is."""
    [bounds] = (
        history.agg(f.min("timestamp"), f.max("timestamp"))
        .select(
            (f.unix_millis("min(timestamp)")).alias("first"), (f.unix_millis("max(timestamp)")).alias("last")
        )
        .collect()
    )
    third = (bounds["last"] - bounds["first"]) // 3
    start_ms, end_ms = bounds["first"] + third, bounds["last"] - third
    partitions = [row[0] for row in history.select("partition").distinct().collect()]
    found = kafka.table(
        names.ACTIVITY,
        {
            "startingOffsetsByTimestamp": json.dumps(
                {names.ACTIVITY: {str(p): start_ms for p in partitions}}
            ),
            "endingOffsetsByTimestamp": json.dumps({names.ACTIVITY: {str(p): end_ms for p in partitions}}),
        },
    )
    at = f.unix_millis("timestamp")
    expected = history.where((at >= start_ms) & (at < end_ms))
    columns = ("partition", "offset", "timestamp", "key", "value")
    return _compare("a stretch of history by time", expected.select(*columns), found.select(*columns))


def _compare_topic(kafka: Kafka, name: str, expected: DataFrame, topic: str) -> Check:
    wanted = expected.select(f.col("key").cast("string"), f.col("value").cast("string"))
    return _compare(name, wanted, kafka.latest_by_key(topic))


def _compare(name: str, expected: DataFrame, found: DataFrame) -> Check:
    wanted, got = expected.select(*sorted(expected.columns)), found.select(*sorted(expected.columns))
    return Check(name, wanted.count(), wanted.exceptAll(got).count(), got.exceptAll(wanted).count())
