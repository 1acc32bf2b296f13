"""`python -m benchmarks.recovery`: how long Ottla and a real Kafka take to come back; QUICK=1 for a short run.

Both start in turns on the same data directory, which is Kafka's format: after kill -9, with nothing known about
what is on the disk so that every byte is read, and after a clean stop with very many partitions. The clock runs from
the start of the process until the last partition is served. It writes its part of docs/benchmarks.md.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measures import Figures, Measure
from benchmarks.process_figures import OtherWork
from benchmarks.report import RECOVERY, caveat, shown, table, write_section
from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.real import KAFKA_DEFAULT_OPTIONS, RealKafka
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic, wait_until_served
from ottla.log_store.checkpoints import RECOVERY_POINT_CHECKPOINT
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

TOPIC = "t"
PRODUCE_VERSION = 9
RECORDS_PER_BATCH = 16
PARTITIONS_PER_REQUEST = 32
RECOVERY_PARTITIONS = 8


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much data there is, and how often everything is done."""

    recovery_gb: float
    small_batches_gb: float
    clean_partitions: int
    clean_gb: float
    rounds: int


FULL = Sizes(recovery_gb=5, small_batches_gb=0.5, clean_partitions=1000, clean_gb=10, rounds=3)
QUICK = Sizes(recovery_gb=1, small_batches_gb=0.2, clean_partitions=200, clean_gb=1, rounds=1)

BROKERS: dict[str, Callable[[Path], BrokerProcess]] = {
    "ottla": lambda path: OttlaProcess(path),
    "kafka": lambda path: RealKafka(path, java_options=KAFKA_DEFAULT_OPTIONS),
}


def main() -> int:
    """Measure everything, print the table, write it into the page."""
    quick = os.environ.get("QUICK", "") not in ("", "0")
    sizes = QUICK if quick else FULL
    others = OtherWork()
    results: dict[str, list[Figures]] = {name: [{} for _ in range(sizes.rounds)] for name in BROKERS}
    large = Measure(f"start after kill -9, {sizes.recovery_gb:g} GB in batches of 16 KB", "s", False)
    small = Measure(f"start after kill -9, {sizes.small_batches_gb:g} GB in batches of 1 KB", "s", False)
    clean = Measure(f"clean start, {sizes.clean_partitions:,} partitions, {sizes.clean_gb:g} GB", "s", False)
    stop = Measure(f"clean stop, {sizes.clean_partitions:,} partitions", "s", False)
    with tempfile.TemporaryDirectory(prefix="ottla-recovery-") as scratch:
        for what, gigabytes, value_bytes in (
            (large, sizes.recovery_gb, 1024),
            (small, sizes.small_batches_gb, 64),
        ):
            data = Path(scratch) / "killed"
            fill(data, RECOVERY_PARTITIONS, gigabytes, value_bytes)
            measure_recovery(data, what, results)
            shutil.rmtree(data)
        data = Path(scratch) / "clean"
        fill(data, sizes.clean_partitions, sizes.clean_gb, 1024)
        measure_clean(data, sizes.clean_partitions, (clean, stop), results)
    other_cores = others.cores()
    print(f"\n{table(results)}\n\n{caveat(other_cores)}", end="")
    print(f"written to {write_section(RECOVERY, results, other_cores)}")
    return 0


def fill(data: Path, partitions: int, gigabytes: float, value_bytes: int) -> None:
    """Make a topic with so much data in batches of 16 records, and stop cleanly."""
    value = os.urandom(value_bytes)
    batch = build_batch([Record(number, 1, None, value, ()) for number in range(RECORDS_PER_BATCH)])
    rounds = max(1, round(gigabytes * 1e9 / len(batch) / partitions))
    print(
        f"filling {data} with {partitions} partitions of {rounds} batches of {len(batch)} bytes", flush=True
    )
    with OttlaProcess(data) as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, TOPIC, partitions)
        for _ in range(rounds):
            for first in range(0, partitions, PARTITIONS_PER_REQUEST):
                indexes = range(first, min(first + PARTITIONS_PER_REQUEST, partitions))
                rows = [PartitionProduceData(index=index, records=batch) for index in indexes]
                topics = [TopicProduceData(name=TOPIC, partition_data=rows)]
                raw.send(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), PRODUCE_VERSION)
        assert broker.stop() == 0


def measure_recovery(data: Path, what: Measure, results: dict[str, list[Figures]]) -> None:
    """Each broker starts on a directory whose last user was killed and had flushed nothing it knew of."""
    for number in range(len(results["ottla"])):
        for name, make in BROKERS.items():
            (data / ".kafka_cleanshutdown").unlink(missing_ok=True)
            (data / RECOVERY_POINT_CHECKPOINT).unlink(missing_ok=True)
            with make(data) as broker:
                note(results, name, number, what, seconds_to_serve(broker, RECOVERY_PARTITIONS))
                broker.kill()


def measure_clean(
    data: Path, partitions: int, whats: Sequence[Measure], results: dict[str, list[Figures]]
) -> None:
    """Each broker starts and stops on a directory that was left in order, by itself."""
    start, stop = whats
    for name, make in BROKERS.items():
        with make(data) as broker:
            wait_for(broker, partitions)
            broker.stop()
        for number in range(len(results[name])):
            with make(data) as broker:
                note(results, name, number, start, seconds_to_serve(broker, partitions))
                before = time.perf_counter()
                broker.stop()
                note(results, name, number, stop, time.perf_counter() - before)


def seconds_to_serve(broker: BrokerProcess, partitions: int) -> float:
    """How long ago the process of a broker that has just become ready was started, once all is served."""
    wait_for(broker, partitions)
    return time.time() - process_start(broker.pid)


def wait_for(broker: BrokerProcess, partitions: int) -> None:
    with RawClient.to(broker.bootstrap) as raw:
        wait_until_served(raw, TOPIC, partitions)


def process_start(pid: int) -> float:
    """When a process began, in seconds since 1970."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    booted = next(
        int(line.split()[1]) for line in Path("/proc/stat").read_text().splitlines() if "btime" in line
    )
    return booted + ticks / os.sysconf("SC_CLK_TCK")


def note(results: dict[str, list[Figures]], name: str, number: int, what: Measure, seconds: float) -> None:
    results[name][number][what] = seconds
    print(f"{name:6} {what.title:60} {shown(what, seconds):>12}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
