"""Following the queries while they run: a line for people, samples for the report."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import mean
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from spark_demo.producing import ActivitySource
from spark_demo.streams import QUALITY

_RATE_SECONDS = 10  # rates on the screen are means of so long
_LINE_SECONDS = 5  # between lines where they cannot replace each other


@dataclass(frozen=True)
class Sample:
    """One batch of one query."""

    query: str
    second: float  # when it ended
    rows: int
    batch_ms: int
    late: int
    too_late: int
    broken: int
    doubled: int


class Watch:
    """Collects what the queries say of themselves, and how far behind the source they are."""

    def __init__(self, queries: Mapping[str, StreamingQuery], source: ActivitySource) -> None:
        self._queries = queries
        self._source = source
        self._seen = dict.fromkeys(queries, -1)
        self._started = time.time()
        self._shown = -float(_LINE_SECONDS)
        self.samples: list[Sample] = []
        self.sent: list[tuple[float, int]] = []  # second, records sent so far
        self.read: dict[str, list[tuple[float, int]]] = {name: [] for name in queries}
        self.last: dict[str, dict[str, Any]] = {}

    @property
    def started_ms(self) -> int:
        """When the run began, in milliseconds since 1970."""
        return int(self._started * 1000)

    def look(self) -> None:
        """Take in what is new and show it. A query that failed raises its error."""
        second = time.time() - self._started
        self.sent.append((second, self._source.sent))
        for name, query in self._queries.items():
            if (error := query.exception()) is not None:
                raise error
            for progress in reversed(list(_newest_first(query, self._seen[name]))):
                self._take(name, progress)
            self.read[name].append((second, self.total(name, "rows")))
        self._show(second)

    def _take(self, name: str, progress: dict[str, Any]) -> None:
        self.last[name] = progress
        self._seen[name] = progress["batchId"]
        batch_ms = progress["durationMs"].get("triggerExecution", 0)
        began = datetime.fromisoformat(progress["timestamp"]).timestamp()
        quality = progress.get("observedMetrics", {}).get(QUALITY, {})
        self.samples.append(
            Sample(
                query=name,
                second=began + batch_ms / 1000 - self._started,
                rows=progress["numInputRows"],
                batch_ms=batch_ms,
                late=quality.get("late", 0),
                too_late=quality.get("too_late", 0),
                broken=quality.get("broken", 0),
                doubled=sum(
                    each.get("customMetrics", {}).get("numDroppedDuplicateRows", 0)
                    for each in progress["stateOperators"]
                ),
            )
        )

    def total(self, query: str, what: str) -> int:
        """The sum of a figure over the batches of a query."""
        return sum(getattr(sample, what) for sample in self.samples if sample.query == query)

    def lag(self, query: str) -> list[tuple[float, float]]:
        """Seconds, and how many records that were sent the query had not finished with."""
        pairs = zip(self.sent, self.read[query], strict=True)
        return [(second, max(sent - read, 0)) for (second, sent), (_, read) in pairs]

    @property
    def is_behind(self) -> bool:
        """Whether a query has not finished with everything that was sent."""
        return any(counts[-1][1] < self._source.sent for counts in self.read.values())

    def _show(self, second: float) -> None:
        if not sys.stdout.isatty() and second < self._shown + _LINE_SECONDS:
            return
        self._shown = second
        slowest = min(self.read, key=lambda name: self.read[name][-1][1])
        late, too_late, broken = (self.total("dead letters", what) for what in ("late", "too_late", "broken"))
        line = (
            f"{second:4.0f} s | sent {self._source.sent:>8,} ({_rate(self.sent):>6,.0f}/s) | "
            f"read {self.read[slowest][-1][1]:>8,} ({mean(map(_rate, self.read.values())):>6,.0f}/s) | "
            f"lag {self.lag(slowest)[-1][1]:>7,} | late {late:>5,}, too late {too_late:>4,} | broken {broken:>4,}"
        )
        print(
            f"\r{line}" if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True
        )


def _rate(counts: list[tuple[float, int]]) -> float:
    """Records a second, lately."""
    last, count = counts[-1]
    first, before = next(point for point in counts if point[0] >= last - _RATE_SECONDS)
    return (count - before) / max(last - first, 1e-9)


def _newest_first(query: StreamingQuery, batch_id: int) -> Iterator[dict[str, Any]]:
    """The batches of a query that came after that one.

    A query that has nothing to do tells so under the number of its next batch. PySpark's own `recentProgress` asks Java
    for every figure of a hundred batches by itself, which takes seconds.
    """
    recent = query._jsq.recentProgress()
    for number in range(len(recent) - 1, -1, -1):
        progress = json.loads(recent[number].json())
        if progress["batchId"] <= batch_id:
            return
        if "addBatch" in progress["durationMs"]:
            yield progress
