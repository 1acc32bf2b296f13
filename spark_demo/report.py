"""The report of a run: one HTML page with its figures, plots and checks, and nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pyspark.sql import functions as f

from docs.plots import bars, lines
from spark_demo import names
from spark_demo.checking import Check
from spark_demo.tables import Kafka
from spark_demo.watching import Watch

_QUERIES_SHOWN = ("events", "page counts", "sessions", "dead letters")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #111827 }
h1 { font-size: 1.6rem } h2 { font-size: 1.1rem; margin-top: 2rem } svg { width: 100%; max-width: 48rem }
table { border-collapse: collapse } td, th { padding: .25rem .8rem; border-bottom: 1px solid #e5e7eb; text-align: left }
td.n { text-align: right; font-variant-numeric: tabular-nums } .ok { color: #15803d } .bad { color: #b91c1c }
"""


@dataclass(frozen=True)
class Results:
    """What is read from the outputs for the report."""

    latency_ms: Sequence[tuple[float, float, float]]  # second, median, 99th percentile
    pages: Sequence[tuple[str, float]]
    session_lengths: Sequence[tuple[str, float]]
    problems: Sequence[tuple[str, float]]


def read_results(kafka: Kafka, out: str) -> Results:
    """Ask Spark for what the report shows."""
    sent_at = f.expr("filter(headers, h -> h.key = 'sent-at')[0].value").cast("string").cast("long")
    written = kafka.table(names.CLEAN).select(
        f.unix_millis("timestamp").alias("written"), (f.unix_millis("timestamp") - sent_at).alias("latency")
    )
    [first] = written.agg(f.min("written")).collect()
    second = f.floor((f.col("written") - first[0]) / 1000)
    latency = (
        written.groupBy(second.alias("second"))
        .agg(f.percentile("latency", 0.5).alias("p50"), f.percentile("latency", 0.99).alias("p99"))
        .orderBy("second")
        .collect()
    )
    pages = (
        kafka.spark.read.parquet(f"{out}/tables/pages")
        .groupBy("page")
        .agg(f.sum("views").alias("views"))
        .orderBy(f.desc("views"))
        .limit(10)
        .collect()
    )
    session = f.from_json("value", "start timestamp, end timestamp, events long")
    minutes = f.least(f.floor((f.unix_seconds("s.end") - f.unix_seconds("s.start")) / 300), f.lit(11))
    lengths = (
        kafka.latest_by_key(names.SESSIONS)
        .select(session.alias("s"))
        .groupBy(minutes.alias("bucket"))
        .count()
        .orderBy("bucket")
        .collect()
    )
    problem = f.expr("filter(headers, h -> h.key = 'problem')[0].value").cast("string")
    problems = (
        kafka.table(names.DEAD_LETTERS)
        .groupBy(problem.alias("problem"))
        .count()
        .orderBy(f.desc("count"))
        .collect()
    )
    return Results(
        [(row["second"], row["p50"], row["p99"]) for row in latency],
        [(row["page"], row["views"]) for row in pages],
        [(_minutes(row["bucket"]), row["count"]) for row in lengths],
        [(row["problem"], row["count"]) for row in problems],
    )


def _minutes(bucket: int) -> str:
    return f"{bucket * 5} min or more" if bucket == 11 else f"{bucket * 5} to {bucket * 5 + 5} min"


def html_report(title: str, watch: Watch, results: Results, checks: Sequence[Check]) -> str:
    """The page."""
    good = all(check.holds for check in checks)
    verdict = (
        '<p class="ok">The batch over the history and the streams agree to the record.</p>'
        if good
        else '<p class="bad">The batch over the history and the streams do not agree.</p>'
    )
    sections = [
        ("Does the stream agree with the batch?", verdict + _table(checks)),
        ("Throughput", lines(_throughput(watch), "records/s")),
        (
            "From sent to written, through Spark",
            lines(
                {
                    "median": [(second, p50) for second, p50, _ in results.latency_ms],
                    "99th percentile": [(second, p99) for second, _, p99 in results.latency_ms],
                },
                "ms",
            ),
        ),
        ("Lag", lines(_of_queries(watch, "behind"), "records behind the end of the topic")),
        ("Time a batch takes", lines(_of_queries(watch, "batch_ms"), "ms")),
        ("Pages looked at most", bars(results.pages)),
        ("How long sessions last", bars(results.session_lengths)),
        ("What went to the dead letters", bars(results.problems)),
    ]
    body = "".join(f"<h2>{escape(heading)}</h2>{content}" for heading, content in sections)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{body}</body></html>"
    )


def _table(checks: Sequence[Check]) -> str:
    rows = "".join(
        f'<tr><td>{escape(each.name)}</td><td class="n">{each.expected:,}</td><td class="n">{each.missing:,}</td>'
        f'<td class="n">{each.extra:,}</td><td class="{"ok" if each.holds else "bad"}">'
        f"{'agrees' if each.holds else 'differs'}</td></tr>"
        for each in checks
    )
    return f"<table><tr><th></th><th>records</th><th>missing</th><th>beside</th><th></th></tr>{rows}</table>"


def _throughput(watch: Watch) -> dict[str, list[tuple[float, float]]]:
    sent = [
        (second, (count - before) / (second - earlier))
        for (earlier, before), (second, count) in zip(watch.sent, watch.sent[1:], strict=False)
        if second > earlier
    ]
    read = [(sample.second, sample.rows_per_second) for sample in watch.samples if sample.query == "events"]
    return {"sent": sent, "read by a query": read}


def _of_queries(watch: Watch, what: str) -> dict[str, list[tuple[float, float]]]:
    return {
        query: [(sample.second, getattr(sample, what)) for sample in watch.samples if sample.query == query]
        for query in _QUERIES_SHOWN
    }
