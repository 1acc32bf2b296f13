"""Kafka's own measuring tools as clients: ProducerPerformance, ConsumerPerformance and EndToEndLatency.

They run as main classes from Kafka's jars. Speed is what they say themselves, without the start of their JVM; the
broker's CPU is that of the whole run. Their threads are looked at while they run.
"""

import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.client_process import ClientFailed
from benchmarks.process_figures import (
    Stopwatch,
    Target,
    busiest_thread,
    cpu_seconds,
    resident_mb,
    thread_seconds,
)
from compat_tests.kafka.tools import java_command

OPTIONS = ("-Xmx512m", "-XX:+UseG1GC")
PATIENCE_SECONDS = 300
_LOOK_SECONDS = 0.1
_PRODUCED = re.compile(r"^(\d+)[^,]* records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\)", re.M)
_LATENCY = re.compile(r"Avg latency: ([\d.]+) ms")
MIB = 1 << 20


def producer_performance(
    broker: Target,
    topic: str,
    size: int,
    count: int,
    acks: str,
    transactional_id: str = "",
    transaction_ms: int = 0,
) -> Stopwatch:
    """MB/s of the whole run as the tool reports it, behind a fifth as many records to warm up; in transactions that are
    committed after so many milliseconds if they have an id."""
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--throughput", "-1"]
    arguments += [
        "--record-size",
        str(size),
        "--num-records",
        str(count),
        "--warmup-records",
        str(count // 5),
    ]
    arguments += ["--command-property", f"acks={acks}"]
    if transactional_id:
        arguments += ["--transactional-id", transactional_id]
        arguments += ["--transaction-duration-ms", str(transaction_ms)]
    text, watch = _run(broker, "org.apache.kafka.tools.ProducerPerformance", arguments)
    # The last line of the report is that of the steady state.
    watch.result["MB/s"] = float(_PRODUCED.findall(text)[-1][2]) * MIB / 1e6
    watch.result["bytes"] = size * count
    return watch


def consumer_performance(broker: Target, topic: str, size: int, count: int) -> Stopwatch:
    """MB/s of fetching, without the time to join the group."""
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--num-records", str(count)]
    arguments += ["--hide-header", "--timeout", "60000"]
    text, watch = _run(broker, "org.apache.kafka.tools.ConsumerPerformance", arguments)
    # start, end, MB, MB/s, records, records/s, join ms, fetch ms, fetch MB/s, fetch records/s
    row = [cell.strip() for cell in text.strip().splitlines()[-1].split(",")]
    if int(row[4]) < count:
        raise ClientFailed(f"ConsumerPerformance read {row[4]} of {count} records: {text}")
    watch.result["MB/s"] = float(row[8]) * MIB / 1e6
    watch.result["bytes"] = int(row[4]) * size
    return watch


def end_to_end_latency(broker: Target, topic: str, count: int) -> Stopwatch:
    """The mean time from sending a record with acks=all to having consumed it, one after the other, in ms; the tool
    gives percentiles only in whole milliseconds."""
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--num-records", str(count)]
    arguments += ["--producer-acks", "all", "--record-size", "100"]
    text, watch = _run(broker, "org.apache.kafka.tools.EndToEndLatency", arguments)
    found = _LATENCY.search(text)
    if found is None:
        raise ClientFailed(f"EndToEndLatency said nothing of latency: {text}")
    watch.result["mean"] = float(found[1])
    return watch


def _run(broker: Target, main_class: str, arguments: Sequence[str]) -> tuple[str, Stopwatch]:
    """Run a tool to its end; what it printed, and a stopwatch of the whole run."""
    watch = Stopwatch()
    cpu_before, before = cpu_seconds(broker.pid, with_children=True), time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            java_command(main_class, *arguments, options=OPTIONS),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=Path(tempfile.gettempdir()),
        )
        with process:
            try:
                _look_until_it_ends(process, broker, watch)
            finally:
                process.kill()
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        raise ClientFailed(f"{main_class} ended with {process.returncode}: {text[-500:]}")
    watch.seconds = time.perf_counter() - before
    watch.broker_cpu_seconds = cpu_seconds(broker.pid, with_children=True) - cpu_before
    watch.resident_mb = resident_mb(broker.pid)
    return text, watch


def _look_until_it_ends(process: subprocess.Popen[bytes], broker: Target, watch: Stopwatch) -> None:
    """Note the busiest thread of the second half of the run, and the cores in use in it; before, a JVM starts. A thread
    that has ended by then counts with what was last seen of it: at the end of a tool only its JVM is left."""
    began = time.perf_counter()
    looks: list[tuple[float, dict[str, tuple[float, float]], float, float]] = []
    seen: dict[str, tuple[float, float]] = {}
    while True:
        try:
            process.wait(_LOOK_SECONDS)
            break
        except subprocess.TimeoutExpired:
            seen = seen | thread_seconds(process.pid)
            looks.append((time.perf_counter(), seen, cpu_seconds(process.pid), cpu_seconds(broker.pid)))
        if time.perf_counter() - began > PATIENCE_SECONDS:
            raise ClientFailed("a tool of Kafka's does not end")
    if len(looks) < 2:
        return
    (start, first, own_before, broker_before), (end, last, own, brokers) = looks[len(looks) // 2], looks[-1]
    seconds = max(end - start, _LOOK_SECONDS)
    watch.client, watch.client_waits = busiest_thread(first, last, seconds)
    watch.broker_cores = (brokers - broker_before) / seconds
    watch.cores = (own - own_before) / seconds + watch.broker_cores
