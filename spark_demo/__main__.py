"""`python -m spark_demo`: a broker, the pipeline on it for a while, a check of its results, and a report.

With `--bootstrap` it uses a cluster that runs already, with `--master` Spark's; then `--out` is a place that all of
Spark's machines can write.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from ottla.testing import Broker
from spark_demo.checking import Check, check
from spark_demo.events import Settings
from spark_demo.names import create_topics
from spark_demo.producing import ActivitySource
from spark_demo.report import html_report, read_results
from spark_demo.streams import start_queries
from spark_demo.tables import Kafka, spark_session
from spark_demo.watching import Watch

_LOOK_SECONDS = 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="spark_demo", description=__doc__)
    parser.add_argument("--bootstrap", help="a cluster to use; default: a broker of its own")
    parser.add_argument("--master", default="local[2]", help="Spark's master; default local[2]")
    parser.add_argument("--seconds", type=int, default=60, help="how long events are sent; default 60")
    parser.add_argument("--rate", type=int, default=1_000, help="events a second; default 1,000")
    parser.add_argument("--out", help="where tables and checkpoints go; default: a temporary directory")
    parser.add_argument("--report", default="spark_demo/report.html", help="default spark_demo/report.html")
    return parser.parse_args()


def main() -> int:
    """Run the demonstration; 0 when stream and batch agree."""
    arguments = _arguments()
    with ExitStack() as stack:
        bootstrap = arguments.bootstrap or stack.enter_context(Broker()).bootstrap
        out = arguments.out or stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-demo-"))
        print(f"broker at {bootstrap}; starting Spark ...", flush=True)
        spark = spark_session(arguments.master, "website activity")
        stack.callback(spark.stop)
        kafka = Kafka(spark, bootstrap)
        create_topics(bootstrap)
        span_ms = arguments.seconds * 1000 * Settings.speed
        settings = Settings(events_per_second=arguments.rate, start_ms=int(time.time() * 1000) - span_ms)
        source = ActivitySource(bootstrap, settings, arguments.seconds)
        source.send_users()
        watch = _run(kafka, out, source)
        print(f"\nchecking {source.delivered:,} records against a batch over the history ...", flush=True)
        checks = []
        for each in check(kafka, out, watch.last):
            checks.append(each)
            print(_told(each), flush=True)
        title = f"Website activity: {source.sent:,} records in {arguments.seconds} s"
        Path(arguments.report).write_text(html_report(title, watch, read_results(kafka, out), checks))
        print(f"report: {arguments.report}")
    return 0 if all(each.holds for each in checks) else 1


def _run(kafka: Kafka, out: str, source: ActivitySource) -> Watch:
    queries = start_queries(kafka, out)
    watch = Watch(queries, source)
    source.start()
    try:
        while source.is_sending:
            time.sleep(_LOOK_SECONDS)
            watch.look()
        source.join()
        for query in queries.values():
            query.processAllAvailable()
            watch.look()
    finally:
        for query in queries.values():
            query.stop()
    return watch


def _told(each: Check) -> str:
    verdict = "agrees" if each.holds else f"differs: {each.missing:,} missing, {each.extra:,} beside"
    return f"  {each.name:30} {each.expected:>8,} records  {verdict}"


if __name__ == "__main__":
    sys.exit(main())
