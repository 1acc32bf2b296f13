"""The report of a run: one HTML page with its figures, plots and checks, and nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from docs.plots import Points, bars, lines, standalone
from spark_demo.checking import Check
from spark_demo.results import Results
from spark_demo.watching import Watch

_RATE_SECONDS = 5  # rates are means of so long
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #111827 }
h1 { font-size: 1.6rem; margin-bottom: 0 } h2 { font-size: 1.05rem; margin: 0 0 .4rem } p { margin: .3rem 0 }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 1.2rem }
.box { border: 1px solid #e5e7eb; border-radius: .5rem; padding: 1rem } svg { width: 100% }
.figures { display: flex; flex-wrap: wrap; gap: .5rem 2.2rem; margin: 1.2rem 0 }
.figures b { display: block; font-size: 1.3rem }
table { border-collapse: collapse } td, th { padding: .2rem .8rem .2rem 0; text-align: left; font-weight: normal }
th { color: #6b7280 } .n { text-align: right; font-variant-numeric: tabular-nums } small { color: #6b7280 }
.ok { color: #15803d } .bad { color: #b91c1c }
"""


@dataclass(frozen=True)
class Run:
    """What was run, in words, for the head of the page."""

    title: str
    words: str


@dataclass(frozen=True)
class Box:
    """A part of the page: a plot or a table, and a sentence about it."""

    name: str
    heading: str
    content: str
    words: str = ""


def html_report(run: Run, watch: Watch, results: Results, checks: Sequence[Check]) -> str:
    """The page."""
    agreement = Box("agreement", "Does the stream agree with the batch?", _verdict(checks))
    body = "".join(
        f'<div class="box"><h2>{escape(box.heading)}</h2>{box.content}<small>{escape(box.words)}</small></div>'
        for box in (agreement, *_boxes(watch, results))
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(run.title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(run.title)}</h1><p><small>{escape(run.words)}</small></p>"
        f'<div class="figures">{_figures(watch, results)}</div><div class="grid">{body}</div></body></html>'
    )


def plot_files(watch: Watch, results: Results) -> dict[str, str]:
    """The plots of the page as files of their own, by their names."""
    return {f"{box.name}.svg": standalone(box.content, box.heading) for box in _boxes(watch, results)}


def _boxes(watch: Watch, results: Results) -> list[Box]:
    latency = {
        "median": [(second, p50 / 1000) for second, p50, _ in results.latency_ms],
        "99th percentile": [(second, p99 / 1000) for second, _, p99 in results.latency_ms],
    }
    return [
        Box(
            "throughput",
            "Throughput",
            lines(_throughput(watch), "records/s"),
            f"Means of {_RATE_SECONDS} seconds.",
        ),
        Box(
            "latency",
            "End-to-end latency",
            lines(latency, "seconds"),
            "From the website's send to the event's record in the topic of clean events, through the broker, Spark"
            " and the broker again, by the second in which it was written.",
        ),
        Box(
            "lag",
            "Lag",
            lines({name: watch.lag(name) for name in watch.read}, "records"),
            "Records that were sent and that a query has not yet finished with.",
        ),
        Box(
            "batches",
            "Time a batch takes",
            lines(_batches(watch), "seconds"),
            "From the trigger to the commit.",
        ),
        Box(
            "late",
            "Late and broken events",
            lines(_judged(watch), "records so far"),
            "Late ones count still, too late and broken ones went to the dead letters.",
        ),
        Box("dead-letters", "What went to the dead letters", bars(results.problems)),
        Box(
            "pages",
            "Pages looked at most",
            bars(results.pages),
            "From the topic of pages per minute; minutes that are over.",
        ),
        Box(
            "sessions",
            "How long sessions last",
            bars(results.session_lengths),
            "From the table of sessions; those that are over.",
        ),
    ]


def _figures(watch: Watch, results: Results) -> str:
    slowest = min(watch.read, key=lambda name: watch.read[name][-1][1])
    figures: Mapping[str, str] = {
        "records sent": f"{watch.sent[-1][1]:,}",
        "read by each query": f"{watch.read[slowest][-1][1]:,}",
        "records/s, all in all": f"{_mean(watch.read[slowest]):,.0f}",
        "median latency": f"{results.median_ms / 1000:.1f} s",
        "99th percentile": f"{results.p99_ms / 1000:.1f} s",
        "late, taken": f"{watch.total('dead letters', 'late'):,}",
        "too late": f"{watch.total('dead letters', 'too_late'):,}",
        "broken": f"{watch.total('dead letters', 'broken'):,}",
        "doubled, dropped": f"{watch.total('events', 'doubled'):,}",
    }
    return "".join(f"<div><b>{value}</b>{escape(name)}</div>" for name, value in figures.items())


def _verdict(checks: Sequence[Check]) -> str:
    good = all(check.holds for check in checks)
    words = "To the record: a batch over the history comes to the same." if good else "No: see below."
    rows = "".join(
        f'<tr><td>{escape(each.name)}</td><td class="n">{each.expected:,}</td><td class="n">{each.missing:,}</td>'
        f'<td class="n">{each.extra:,}</td><td class="{_class(each.holds)}">{"agrees" if each.holds else "differs"}'
        "</td></tr>"
        for each in checks
    )
    head = '<tr><th></th><th class="n">records</th><th class="n">missing</th><th class="n">too many</th><th></th></tr>'
    return f'<p class="{_class(good)}">{words}</p><table>{head}{rows}</table>'


def _class(good: bool) -> str:
    return "ok" if good else "bad"


def _throughput(watch: Watch) -> dict[str, Points]:
    series: dict[str, Points] = {"sent": _rates(watch.sent)}
    for name in ("events", "pages per minute"):
        ends = [(0.0, watch.read[name][0][1])]
        for sample in sorted(watch.samples, key=lambda each: each.second):
            if sample.query == name and sample.second > 0:
                ends.append((sample.second, ends[-1][1] + sample.rows))
        series[f"read: {name}"] = _rates(ends)
    return series


def _rates(counts: Sequence[tuple[float, int]]) -> list[tuple[float, float]]:
    """Records a second, over stretches of some seconds or, where there is no figure for longer, of that length."""
    found: list[tuple[float, float]] = []
    before, count = counts[0]
    for second, total in counts:
        if second - before >= _RATE_SECONDS:
            rate = (total - count) / (second - before)
            found += [(before, rate), (second, rate)]
            before, count = second, total
    return found


def _mean(counts: Sequence[tuple[float, int]]) -> float:
    """Records a second until everything was read."""
    (start, before), total = counts[0], counts[-1][1]
    end = next(second for second, count in counts if count == total)
    return (total - before) / max(end - start, 1e-9)


def _batches(watch: Watch) -> dict[str, Points]:
    return {
        name: [
            (each.second, each.batch_ms / 1000)
            for each in watch.samples
            if each.query == name and each.second > 0
        ]
        for name in watch.read
    }


def _judged(watch: Watch) -> dict[str, Points]:
    series: dict[str, Points] = {}
    for what, name in (("late", "late"), ("too_late", "too late"), ("broken", "broken")):
        total, points = 0, []
        for each in watch.samples:
            if each.query == "dead letters":
                total += getattr(each, what)
                points.append((max(each.second, 0), total))
        series[name] = points
    return series
