"""The pipeline of spark_demo in parts: what it makes of single records, in both formats, and what its check notices."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_demo.checking import Check, compare
from spark_demo.events import Settings, arrivals
from spark_demo.formats import FORMATS, Format
from spark_demo.transforms import as_records, events, judge, once_each

ARRIVED_MS = 1_700_000_000_000
EVENT: dict[str, Any] = {
    "event_id": "e",
    "user_id": "u",
    "type": "search",
    "page": "/p",
    "query": "é",
    "event_time_ms": ARRIVED_MS - 1_000,
}
RECORD = "value binary, time_ms long, headers array<struct<key: string, value: binary>>"


@pytest.fixture(params=FORMATS)
def written(request: pytest.FixtureRequest) -> Format:
    """Each way to write events."""
    return FORMATS[request.param]()


def judged(spark: SparkSession, written: Format, values: list[bytes]) -> Any:
    records = spark.createDataFrame([(bytearray(value), ARRIVED_MS, None) for value in values], RECORD)
    return judge(written.parse(records.selectExpr("*", "timestamp_millis(time_ms) AS timestamp")))


def test_events_come_through(spark: SparkSession, written: Format) -> None:
    """Every field of an event, in the format that it was written in, and a repetition of it is dropped."""
    value = written.encode(EVENT)
    [found] = once_each(events(judged(spark, written, [value, value]))).collect()
    assert {name: found[name] for name in ("event_id", "user_id", "type", "page", "query")} == {
        name: EVENT[name] for name in ("event_id", "user_id", "type", "page", "query")
    }
    assert found["event_time"].timestamp() * 1000 == EVENT["event_time_ms"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"event_id": None}, "event_id is missing"),
        ({"user_id": None}, "user_id is missing"),
        ({"type": "teleport"}, "type is unknown"),
        ({"event_time_ms": ARRIVED_MS + 90_000}, "happened after it arrived"),
        ({"event_time_ms": ARRIVED_MS - 301_000}, "too late"),
        ({"event_time_ms": ARRIVED_MS - 299_000}, None),
    ],
)
def test_problems(spark: SparkSession, written: Format, changes: dict[str, Any], problem: str | None) -> None:
    """Why an event that fits the schema does not count."""
    [found] = judged(spark, written, [written.encode({**EVENT, **changes})]).collect()
    assert found["problem"] == problem
    assert found["late"] == (problem is None)


def test_bytes_that_do_not_fit(spark: SparkSession, written: Format) -> None:
    """Whatever a broken sender writes is a dead letter; an empty value and one that is cut short, too."""
    rng = random.Random(1)
    broken = [written.encode_broken(rng, EVENT) for _ in range(40)]
    assert len(set(broken)) == 5
    rows = judged(spark, written, [*broken, b"", written.encode(EVENT)[:-1]]).collect()
    assert all(row["problem"] is not None for row in rows)
    assert {row["problem"] for row in rows} == {
        "does not fit the schema",
        "event_id is missing",
        "type is unknown",
    }
    assert [row["problem"] for row in rows[-2:]] == ["does not fit the schema"] * 2


def test_records_of_results(spark: SparkSession, written: Format) -> None:
    """A clean event in a record: its key names it, and its value has its fields."""
    clean = events(judged(spark, written, [written.encode(EVENT)]))
    records = as_records(clean, ("event_id",), written).selectExpr("key", "CAST(value AS BINARY) AS value")
    [record] = records.collect()
    assert record["key"] == "e"
    assert b"/p" in bytes(record["value"])


def test_arrivals(written: Format) -> None:
    """A seed gives the same records each time, some of them twice, in the order of their time."""
    settings = Settings(start_ms=ARRIVED_MS)
    found = list(arrivals(settings, written, 2_000))
    assert found == list(arrivals(settings, written, 2_000))
    assert [each.timestamp_ms for each in found] == sorted(each.timestamp_ms for each in found)
    assert 2_010 < len(found) < 2_080


def test_what_the_check_notices(spark: SparkSession) -> None:
    """Rows that are missing, that are there beside, and that are there twice."""
    expected = spark.createDataFrame([(1, "a"), (2, "b"), (2, "b")], "number int, name string")
    assert compare("same", expected, expected).holds
    other = spark.createDataFrame([(2, "b"), (1, "x"), (1, "x")], "number int, name string")
    assert compare("other", expected, other) == Check("other", 3, missing=2, extra=2)
    nothing = expected.where("number = 0")
    assert not compare("nothing", nothing, nothing).holds
