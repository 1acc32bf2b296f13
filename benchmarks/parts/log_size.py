"""Large logs: a consumer that catches up on 5 GB, and what an append and a read anywhere cost in ever larger logs.

The logs are written once, and both brokers start on the same directory, which is Kafka's format. What is read comes
from the page cache as far as it fits.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from benchmarks import clients, raw_load
from benchmarks.bench import Bench, Part
from benchmarks.client_process import run_client
from benchmarks.measures import Aim, Measure
from benchmarks.parts.growth import FLAT
from benchmarks.plots import Plots, growth_plot
from benchmarks.report import Section
from benchmarks.results import PartResults
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, wait_until_served

RECORD_BYTES, BATCH_RECORDS = 1024, 100
STEPS_GB = (1, 5, 20)
CATCH_UP_GB = 5
QUICK_SHARE = 0.04
FETCH_BATCHES = 10
PATIENCE_SECONDS = 60
SECTION = Section(
    "Large logs",
    """\
Logs of 1, 5 and 20 GB in one directory, on which the brokers start in turns. A consumer reads the 5 GB from beginning
to end; then single batches of 100 KB are read anywhere in each log, and appended to each. The brokers are warmed up
by reading a fifth of the 5 GB.
{rounds}""",
)
CATCH_UP = Measure("catch-up read of 5 GB", "MB/s", True, Aim(ratio_at_least=1.0))
CATCH_UP_CPU = Measure("catch-up read of 5 GB: broker CPU", "s/GB", False, Aim(ratio_at_most=1.0))
RAW = Measure("raw catch-up read of 5 GB", "MB/s", True, Aim(ratio_at_least=1.0))
RAW_CPU = Measure("raw catch-up read of 5 GB: broker CPU", "s/GB", False, Aim(ratio_at_most=1.0))
READS = [Measure(f"read of 100 KB anywhere in {step} GB: broker CPU", "µs", False) for step in STEPS_GB]
APPENDS = [Measure(f"append of 100 KB to {step} GB: broker CPU", "µs", False) for step in STEPS_GB]
READS_FAR = Measure(f"growth of cost of a read, 1 → {STEPS_GB[-1]} GB", "×", False, FLAT)
APPENDS_FAR = Measure(f"growth of cost of an append, 1 → {STEPS_GB[-1]} GB", "×", False, FLAT)


def batches_of(gigabytes: float, quick: bool) -> int:
    """How many batches make a log of so much."""
    return int(gigabytes * (QUICK_SHARE if quick else 1) * 1e9 / (RECORD_BYTES * BATCH_RECORDS))


def fill(directory: Path, quick: bool) -> None:
    """Write the logs and stop cleanly; the largest first, so that the page cache holds the others."""
    needed = sum(STEPS_GB) * (QUICK_SHARE if quick else 1) * 1.3
    free = shutil.disk_usage(directory.parent).free / 1e9
    assert free > needed, f"the logs need {needed:.0f} GB of disk, and {free:.0f} GB are free"
    with OttlaProcess(directory) as broker:
        for step in reversed(STEPS_GB):
            with RawClient.to(broker.bootstrap) as raw:
                create_topic(raw, f"log-{step}")
            run_client(
                broker,
                raw_load.produce,
                topic=f"log-{step}",
                size=RECORD_BYTES,
                records=BATCH_RECORDS,
                requests=batches_of(step, quick),
                acks=1,
            )
        assert broker.stop() == 0


def measure_log(bench: Bench) -> None:
    """Catch up, then touch each log."""
    with RawClient.to(bench.broker.bootstrap) as raw:
        for step in STEPS_GB:
            wait_until_served(raw, f"log-{step}", 1, PATIENCE_SECONDS)
    topic, batches = f"log-{CATCH_UP_GB}", batches_of(CATCH_UP_GB, bench.quick)
    batch_bytes = len(raw_load.batch(RECORD_BYTES, BATCH_RECORDS))
    shape = {"batch_bytes": batch_bytes, "batch_records": BATCH_RECORDS}
    bench.run(clients.fetch, topic=topic, count=batches * BATCH_RECORDS // 5)
    watch = bench.run(clients.fetch, topic=topic, count=batches * BATCH_RECORDS)
    bench.note(CATCH_UP, watch.result["bytes"] / 1e6 / watch.seconds, watch)
    bench.note(CATCH_UP_CPU, watch.broker_cpu_seconds / (watch.result["bytes"] / 1e9))
    watch = bench.run(raw_load.fetch, topic=topic, batches=batches, per_fetch=FETCH_BATCHES, **shape)
    bench.note(RAW, watch.result["bytes"] / 1e6 / watch.seconds, watch)
    bench.note(RAW_CPU, watch.broker_cpu_seconds / (watch.result["bytes"] / 1e9))
    _touch_all(bench, shape)  # once without looking
    reads, appends = _touch_all(bench, shape)
    for measures, costs, far in ((READS, reads, READS_FAR), (APPENDS, appends, APPENDS_FAR)):
        for measure, cost in zip(measures, costs, strict=True):
            bench.note(measure, cost)
        bench.note(far, costs[-1] / costs[0])


def _touch_all(bench: Bench, shape: Mapping[str, int]) -> tuple[list[float], list[float]]:
    """Read and append batches in each log; the broker's CPU of a read and of an append in microseconds."""
    reads, appends = [], []
    fetches, requests = bench.size(3_000, 600), bench.size(1_500, 300)
    for step in STEPS_GB:
        place = {"topic": f"log-{step}", "batches": batches_of(step, bench.quick)}
        watch = bench.run(raw_load.fetch, is_random=True, fetches=fetches, **place, **shape)
        reads.append(watch.broker_cpu_seconds / fetches * 1e6)
        watch = bench.run(
            raw_load.produce,
            topic=f"log-{step}",
            size=RECORD_BYTES,
            records=BATCH_RECORDS,
            requests=requests,
        )
        appends.append(watch.broker_cpu_seconds / requests * 1e6)
    return reads, appends


def plot_log(results: PartResults) -> Plots:
    """Reads and appends over the size of the log."""
    steps = [f"{step} GB" for step in STEPS_GB]
    return {
        **growth_plot(
            "growth-log-reads", results, steps, READS, "read of 100 KB anywhere in a log: broker CPU"
        ),
        **growth_plot("growth-log-appends", results, steps, APPENDS, "append of 100 KB to a log: broker CPU"),
    }


LOG_PART = Part(
    "log",
    SECTION,
    (CATCH_UP, CATCH_UP_CPU, RAW, RAW_CPU, *READS, READS_FAR, *APPENDS, APPENDS_FAR),
    measure_log,
    shares_broker=False,
    fill=fill,
    plots=plot_log,
    seconds=40,
)
