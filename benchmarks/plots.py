"""The plots of the benchmark's page: ratios beside their aims, latencies, and how cost grows."""

import statistics
from collections.abc import Mapping, Sequence

from benchmarks.bench import BROKER_NAMES
from benchmarks.measures import Measure
from benchmarks.report import Row
from benchmarks.results import PartResults
from docs.plots import Ratio, curves, grouped_bars, ratios

Plots = Mapping[str, tuple[str, str]]  # by the name of the file: the SVG, and what it shows

NAMES = {"ottla": "Ottla", "kafka": "Apache Kafka"}


def ratio_plots(rows: Sequence[Row]) -> Plots:
    """Every ratio that has an aim, those that should be high and those that should be low apart."""
    found: dict[str, tuple[str, str]] = {}
    for name, more_is_better, caption in (
        ("ratios-more", True, "Ottla ÷ Kafka, more is better"),
        ("ratios-less", False, "Ottla ÷ Kafka, less is better"),
    ):
        chosen = [
            Ratio(
                row.measure.title,
                row.verdict.low,
                row.verdict.ratio,
                row.verdict.high,
                row.measure.aim.ratio(row.verdict.limit),
                None if row.verdict.is_even else row.verdict.is_met,
            )
            for row in rows
            if row.measure.aim is not None
            and row.measure.aim.ratio() is not None
            and row.measure.more_is_better is more_is_better
        ]
        if chosen:
            words = f"{caption}; the tick is the aim, the bar the spread of the rounds"
            found[name] = (ratios(chosen, words), words)
    return found


def medians(results: PartResults, measure: Measure) -> dict[str, float]:
    """The median of each broker that has the figure."""
    found = {}
    for name in BROKER_NAMES:
        entries = results.entries(measure.title, (name,))
        if entries:
            found[NAMES[name]] = statistics.median(entry.value for (entry,) in entries)
    return found


def latency_plot(name: str, results: PartResults, measures: Sequence[Measure]) -> Plots:
    """Bars for latencies, on a scale of factors."""
    rows = [(measure.title, values) for measure in measures if (values := medians(results, measure))]
    caption = "Latencies, less is better; equal lengths are equal factors"
    return {name: (grouped_bars(rows, "ms"), caption)} if rows else {}


def growth_plot(
    name: str, results: PartResults, steps: Sequence[str], measures: Sequence[Measure], caption: str
) -> Plots:
    """A curve for each broker over the steps of something that grows."""
    series: dict[str, list[float]] = {}
    for measure in measures:
        for broker, value in medians(results, measure).items():
            series.setdefault(broker, []).append(value)
    words = f"{caption}, {measures[0].unit}"
    return {name: (curves(series, steps, words), words)} if series else {}
