"""Following the queries while they run: a line for people, samples for the report."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from spark_demo.producing import ActivitySource
from spark_demo.streams import QUALITY


@dataclass(frozen=True)
class Sample:
    """One batch of one query."""

    query: str
    second: float
    rows: int
    rows_per_second: float
    behind: int
    batch_ms: int
    late: int
    dead: int
    dropped: int


class Watch:
    """Collects what the queries say of themselves."""

    def __init__(self, queries: Mapping[str, StreamingQuery], source: ActivitySource) -> None:
        self._queries = queries
        self._source = source
        self._seen = dict.fromkeys(queries, -1)
        self._started = time.monotonic()
        self.samples: list[Sample] = []
        self.sent: list[tuple[float, int]] = []  # second, records sent so far
        self.last: dict[str, dict[str, Any]] = {}

    def look(self) -> None:
        """Take in what is new and show it. A query that failed raises its error."""
        second = time.monotonic() - self._started
        self.sent.append((second, self._source.sent))
        for name, query in self._queries.items():
            if (error := query.exception()) is not None:
                raise error
            for progress in query.recentProgress:
                self._take(name, second, json.loads(progress.json))
        self._show(second)

    def _take(self, name: str, second: float, progress: dict[str, Any]) -> None:
        if progress["batchId"] < self._seen[name]:
            return
        self.last[name] = progress
        if progress["batchId"] == self._seen[name]:
            return
        self._seen[name] = progress["batchId"]
        quality = progress.get("observedMetrics", {}).get(QUALITY, {})
        self.samples.append(
            Sample(
                query=name,
                second=second,
                rows=progress["numInputRows"],
                rows_per_second=progress.get("processedRowsPerSecond", 0.0),
                behind=int(float(progress["sources"][0].get("metrics", {}).get("maxOffsetsBehindLatest", 0))),
                batch_ms=progress["durationMs"].get("triggerExecution", 0),
                late=quality.get("late", 0),
                dead=quality.get("dead", 0),
                dropped=sum(each["numRowsDroppedByWatermark"] for each in progress["stateOperators"]),
            )
        )

    def total(self, query: str, what: str) -> int:
        """The sum of a figure over the batches of a query."""
        return sum(getattr(sample, what) for sample in self.samples if sample.query == query)

    def _show(self, second: float) -> None:
        recent = {sample.query: sample for sample in self.samples}
        behind = max((sample.behind for sample in recent.values()), default=0)
        rate = sum(sample.rows_per_second for sample in recent.values())
        line = (
            f"{second:4.0f} s  sent {self._source.sent:>8,}  events read {self.total('events', 'rows'):>8,}  "
            f"{rate:>8,.0f} rows/s in {len(self._queries)} queries  behind {behind:>6,}  "
            f"late {self.total('dead letters', 'late'):>5,}  broken "
            f"{self.total('dead letters', 'dead') - self.total('dead letters', 'late'):>5,}"
        )
        if sys.stdout.isatty():
            print(f"\r{line}", end="", flush=True)
        elif len(self.sent) % 5 == 1:
            print(line, flush=True)
