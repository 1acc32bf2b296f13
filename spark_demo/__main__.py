"""`python -m spark_demo`: a broker, the pipeline on it for a while, a check of its results, and a report.

With `--bootstrap` it uses a cluster that runs already, with `--master` Spark's; then `--out` is a place that all of
Spark's machines can write. The exit code is 0 when the streams agree with the batch, else 1.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from ottla.testing import Broker
from spark_demo.checking import Check, check
from spark_demo.events import Settings
from spark_demo.formats import FORMATS, Format
from spark_demo.names import create_topics
from spark_demo.producing import ActivitySource
from spark_demo.report import Run, html_report, plot_files
from spark_demo.results import read_results
from spark_demo.streams import start_queries
from spark_demo.tables import QUICK_START, Kafka, spark_session
from spark_demo.watching import Watch

_LOOK_SECONDS = 1
_SHORTEST_SECONDS = 30  # at which some minutes of a stretch by time are whole


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="spark_demo", description=__doc__)
    parser.add_argument("--bootstrap", help="a Kafka cluster to use; default: a broker of its own")
    parser.add_argument("--master", default="local[2]", help="Spark's master; default local[2]")
    parser.add_argument("--seconds", type=int, default=60, help="how long events are sent; default 60")
    parser.add_argument("--rate", type=int, default=1_000, help="events a second; default 1,000")
    parser.add_argument(
        "--format", choices=FORMATS, default="json", help="how events are written; default json"
    )
    parser.add_argument("--out", help="where tables and checkpoints go; default: a temporary directory")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="a setting of Spark; as many as there are",
    )
    parser.add_argument("--report", default="spark_demo/report.html", help="default spark_demo/report.html")
    parser.add_argument("--plots", help="a directory for the report's plots as files; default: none")
    arguments = parser.parse_args()
    if arguments.seconds < _SHORTEST_SECONDS:
        parser.error(f"--seconds must be at least {_SHORTEST_SECONDS}")
    if not arguments.master.startswith("local") and not (arguments.bootstrap and arguments.out):
        parser.error(
            "with a --master of its own, Spark needs a --bootstrap and an --out that its machines reach"
        )
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        parser.error("Spark needs a Java of 17 to 23: set JAVA_HOME or put one on PATH")
    return arguments


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def main() -> int:
    """Run the demonstration; 0 when stream and batch agree."""
    arguments = _arguments()
    with ExitStack() as stack:
        bootstrap = arguments.bootstrap or stack.enter_context(Broker()).bootstrap
        out = arguments.out or stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-demo-"))
        print(f"broker at {bootstrap}; starting Spark ...", flush=True)
        conf = {**(QUICK_START if arguments.master.startswith("local") else {}), **dict(arguments.conf)}
        spark = spark_session(arguments.master, "website activity", conf)
        stack.callback(spark.stop)
        kafka = Kafka(spark, bootstrap)
        create_topics(bootstrap)
        written = FORMATS[arguments.format]()
        span_ms = arguments.seconds * 1000 * Settings.speed
        settings = Settings(events_per_second=arguments.rate, start_ms=int(time.time() * 1000) - span_ms)
        source = ActivitySource(bootstrap, settings, written, arguments.seconds)
        source.send_users()
        watch = _run(kafka, out, written, source)
        print(f"\nchecking {source.sent:,} records against a batch over the history ...", flush=True)
        checks = []
        for each in check(kafka, out, written, watch.last):
            checks.append(each)
            print(_told(each), flush=True)
        results = read_results(kafka, out, watch.started_ms)
        run = Run(f"Website activity: {source.sent:,} records", _words(spark, arguments, written))
        Path(arguments.report).write_text(html_report(run, watch, results, checks))
        if arguments.plots:
            Path(arguments.plots).mkdir(parents=True, exist_ok=True)
            for name, svg in plot_files(watch, results).items():
                (Path(arguments.plots) / name).write_text(svg)
        print(f"report: {arguments.report}")
    return 0 if all(each.holds for each in checks) else 1


def _run(kafka: Kafka, out: str, written: Format, source: ActivitySource) -> Watch:
    queries = start_queries(kafka, out, written)
    try:
        print("warming up with the first records ...", flush=True)
        source.send_first()
        for query in queries.values():
            query.processAllAvailable()
        watch = Watch(queries, source)
        watch.look()
        source.start()
        while source.is_sending:
            time.sleep(_LOOK_SECONDS)
            watch.look()
        source.join()
        while watch.is_behind:
            time.sleep(_LOOK_SECONDS)
            watch.look()
        # Windows that end without another event.
        for query in queries.values():
            query.processAllAvailable()
        watch.look()
    finally:
        for query in queries.values():
            query.stop()
    return watch


def _words(spark: SparkSession, arguments: argparse.Namespace, written: Format) -> str:
    return (
        f"{arguments.seconds} seconds at {arguments.rate:,} events a second, written in {written.name}; Spark "
        f"{spark.version} on {arguments.master}, Python {platform.python_version()}, {os.cpu_count()} cores here"
    )


def _told(each: Check) -> str:
    verdict = "agrees" if each.holds else f"differs: {each.missing:,} missing, {each.extra:,} too many"
    return f"  {each.name:28} {each.expected:>8,} records  {verdict}"


if __name__ == "__main__":
    sys.exit(main())
