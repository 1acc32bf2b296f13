"""`python -m benchmarks.spark`: how fast Spark reads topics of Ottla and of a real Kafka; QUICK=1 for a short run.

Both brokers run beside each other and hold the same records; one Spark, whose JIT compiler is warm, reads them in
turns: as a batch, and as a stream that ends when it has read what there is (AvailableNow). Rows are made with all
their columns and then dropped. A full run writes its part of docs/benchmarks.md.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as f

from benchmarks import clients
from benchmarks.bench import BROKER_NAMES, is_quick, make_broker
from benchmarks.measures import Aim, Figures, Measure
from benchmarks.process_figures import OtherWork, resident_mb, timed
from benchmarks.report import SPARK, caveat, shown, table, write_section
from compat_tests.broker_process import BrokerProcess
from spark_demo.tables import spark_session

PARTITIONS = 4
NOT_SLOWER = Aim(ratio_at_least=1)
MEMORY = Measure("resident memory of the broker after all this", "MB", False)


@dataclass(frozen=True, slots=True)
class Kind:
    """Records of one size, and how many of them."""

    title: str
    topic: str
    value_bytes: int
    count: int

    @property
    def gigabytes(self) -> float:
        return self.count * self.value_bytes / 1e9


FULL = (
    Kind("5 million of 100 B", "small", 100, 5_000_000),
    Kind("2 million of 1 KB", "large", 1024, 2_000_000),
)
QUICK = (Kind("500,000 of 100 B", "small", 100, 500_000), Kind("200,000 of 1 KB", "large", 1024, 200_000))


def main() -> int:
    """Measure everything, print the table, and write it into the page unless the run is a short one."""
    quick = is_quick()
    kinds, rounds = (QUICK, 1) if quick else (FULL, 3)
    others = OtherWork()
    results: dict[str, list[Figures]] = {name: [{} for _ in range(rounds)] for name in BROKER_NAMES}
    with ExitStack() as stack:
        brokers = {name: stack.enter_context(make_broker(name, None, {})) for name in BROKER_NAMES}
        for name, broker in brokers.items():
            fill(name, broker, kinds)
        spark = stack.enter_context(running_spark())
        for name, broker in brokers.items():
            print(f"warming up on {name} ...", flush=True)
            for kind in kinds:
                for read in READS.values():
                    read(spark, broker, kind)
        for number in range(rounds):
            for kind in kinds:
                for how in READS:
                    # Whoever comes first finds a Spark that has just read something else.
                    for name in sorted(brokers, reverse=number % 2 == 0):
                        figures = results[name][number]
                        take(figures, spark, brokers[name], kind, how)
                        say(number, name, figures)
            for name, broker in brokers.items():
                results[name][number][MEMORY] = resident_mb(broker.pid)
    other_cores = others.cores()
    print(f"\n{table(results)}\n\n{caveat(other_cores)}", end="")
    if not quick:  # which would take the place of better figures
        print(f"written to {write_section(SPARK, results, other_cores)}")
    return 0


def fill(name: str, broker: BrokerProcess, kinds: tuple[Kind, ...]) -> None:
    """Make the topics."""
    print(f"filling {name} ...", flush=True)
    for kind in kinds:
        clients.create_topic(broker, kind.topic, PARTITIONS)  # sends a record of its own
        clients.produce(broker, kind.topic, kind.value_bytes, kind.count - 1, acks="all")


def take(figures: Figures, spark: SparkSession, broker: BrokerProcess, kind: Kind, how: str) -> None:
    """Read one topic in one way, and note how fast and at what cost."""
    with timed(broker) as watch:
        count = READS[how](spark, broker, kind)
    assert count == kind.count, f"{count} records of {kind.count} were read"
    figures[Measure(f"{how}, {kind.title}", "records/s", True, NOT_SLOWER)] = count / watch.seconds
    cpu = watch.broker_cpu_seconds / kind.gigabytes
    figures[Measure(f"{how}, {kind.title}: broker CPU", "s/GB", False)] = cpu


def read_batch(spark: SparkSession, broker: BrokerProcess, kind: Kind) -> int:
    """All of a topic as a table; how many rows it had."""
    seen = Observation()
    rows = spark.read.format("kafka").options(**_options(broker, kind)).load()
    rows.observe(seen, f.count("*").alias("rows")).write.format("noop").mode("overwrite").save()
    return int(seen.get["rows"])


def read_available(spark: SparkSession, broker: BrokerProcess, kind: Kind) -> int:
    """All of a topic as a stream that ends; how many rows it had."""
    stream = spark.readStream.format("kafka").options(**_options(broker, kind)).load()
    with tempfile.TemporaryDirectory(prefix="ottla-spark-") as checkpoint:
        writer = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(int(json.loads(progress.json)["numInputRows"]) for progress in query.recentProgress)


READS: dict[str, Callable[[SparkSession, BrokerProcess, Kind], int]] = {
    "batch read": read_batch,
    "AvailableNow": read_available,
}


def _options(broker: BrokerProcess, kind: Kind) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": kind.topic,
        "startingOffsets": "earliest",
    }


@contextmanager
def running_spark() -> Iterator[SparkSession]:
    """Spark in a process of its own, which has ended afterwards, so that its CPU counts as ours."""
    spark = spark_session("local[2]", "benchmarks", {"spark.driver.memory": "2g"})
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    try:
        yield spark
    finally:
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(clients.PATIENCE_SECONDS)


def say(number: int, name: str, figures: Figures) -> None:
    """Show the two figures that were noted last."""
    (what, value), (_, cpu) = list(figures.items())[-2:]
    print(
        f"[{number + 1}] {name:6} {what.title:36} {shown(what, value):>20}   broker CPU {cpu:.2f} s/GB",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
