"""What transactions cost: the same load with a commit every 100 ms and without transactions, by turns, so that both
meet the same machine, from Kafka's own ProducerPerformance and from librdkafka, there also with a mere wait every
100 ms; and how many transactions of one record are committed in a second, by one producer and by twenty.
"""

import statistics
import threading
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Producer

from benchmarks import java_tools
from benchmarks.bench import Bench, Part
from benchmarks.clients import PATIENCE_SECONDS
from benchmarks.measures import Aim, Measure
from benchmarks.process_figures import Stopwatch, Target, timed
from benchmarks.report import TRANSACTIONS

VALUE = bytes(1024)
STRETCH_SECONDS, STRETCHES, QUICK_STRETCHES = 0.4, 20, 2
WARM_UP_SECONDS = 0.2
COMMIT_SECONDS = 0.1
FULL_QUEUE_SECONDS = 0.0001
TOOL_RUNS, TOOL_RECORDS = 4, 800_000
COUNT_SECONDS, QUICK_COUNT_SECONDS = 4.0, 1.0
PRODUCERS = 20
PLAIN = Measure("produce 1 KB records, idempotent", "MB/s", True)
WAITING = Measure("the same, waiting every 100 ms", "MB/s", True)
TRANSACTIONAL = Measure("the same with a commit every 100 ms", "MB/s", True)
KEPT = Measure("throughput that is kept with transactions", "%", True, Aim(value_at_least=97))
KEPT_OF_PLAIN = Measure("throughput that is kept of one that never waits", "%", True, Aim(value_at_least=97))
COMMITTING = Measure("share of the time in which commits are waited for", "%", False, Aim(value_at_most=3))
TOOL_PLAIN = Measure("ProducerPerformance without transactions", "MB/s", True)
TOOL_TRANSACTIONAL = Measure("ProducerPerformance with a commit every 100 ms", "MB/s", True)
TOOL_PLAIN_CPU = Measure("ProducerPerformance without transactions: broker CPU", "s/GB", False)
TOOL_TRANSACTIONAL_CPU = Measure("ProducerPerformance with a commit every 100 ms: broker CPU", "s/GB", False)
TOOL_KEPT = Measure("ProducerPerformance: throughput that is kept", "%", True, Aim(value_at_least=97))
PLAIN_CPU = Measure("produce 1 KB records, idempotent: broker CPU", "s/GB", False)
TRANSACTIONAL_CPU = Measure("the same with a commit every 100 ms: broker CPU", "s/GB", False)
ONE = Measure("transactions of one record, 1 producer", "/s", True)
ONE_CPU = Measure("transactions of one record: broker CPU each", "µs", False)
TWENTY = Measure(f"transactions of one record, {PRODUCERS} producers", "/s", True)
TWENTY_CPU = Measure(f"transactions of one record, {PRODUCERS} producers: broker CPU each", "µs", False)


def measure_transactions(bench: Bench) -> Iterator[None]:
    """All figures of one broker."""
    broker = bench.broker
    _measure_librdkafka(bench)
    yield
    if not bench.quick:
        _measure_tool(bench)
        yield
    bench.create_topic("one-record", PRODUCERS)
    seconds = bench.size(COUNT_SECONDS, QUICK_COUNT_SECONDS)
    _count_commits(broker, PRODUCERS, seconds / 2)
    for measure, cpu, producers in ((ONE, ONE_CPU, 1), (TWENTY, TWENTY_CPU, PRODUCERS)):
        watch = _count_commits(broker, producers, seconds)
        bench.note(measure, watch.result["commits"] / watch.seconds, watch)
        bench.note(cpu, watch.broker_cpu_seconds / watch.result["commits"] * 1e6)
        yield


def _measure_librdkafka(bench: Bench) -> None:
    """By turns, since the machine may be slow for a while. Each stretch has a topic of its own, whose files are deleted
    before they are written to the disk."""
    plain, waiting = Load(bench.broker), Load(bench.broker, COMMIT_SECONDS)
    transactional = Load(bench.broker, COMMIT_SECONDS, "load")
    loads = [plain, waiting, transactional]
    for number in range(bench.size(STRETCHES, QUICK_STRETCHES)):
        for load in (*loads[number % 3 :], *loads[: number % 3]):
            load.run(bench.create_topic(f"load-{number}-{loads.index(load)}"))
            bench.delete_topics(rest_seconds=0)
    for load, measure in zip(loads, (PLAIN, WAITING, TRANSACTIONAL), strict=True):
        bench.note(measure, load.speed, load.watch)
    bench.note(KEPT, transactional.speed / waiting.speed * 100)
    bench.note(KEPT_OF_PLAIN, transactional.speed / plain.speed * 100)
    bench.note(COMMITTING, transactional.commit_seconds / transactional.watch.seconds * 100)
    bench.note(PLAIN_CPU, plain.watch.broker_cpu_seconds / plain.megabytes * 1000)
    bench.note(TRANSACTIONAL_CPU, transactional.watch.broker_cpu_seconds / transactional.megabytes * 1000)


def _measure_tool(bench: Bench) -> None:
    """Each run with transactions between two without."""
    settings = {"transactional_id": "tool", "transaction_ms": int(COMMIT_SECONDS * 1000)}
    plain, transactional = [_tool(bench)], []
    for _ in range(TOOL_RUNS):
        transactional.append(_tool(bench, **settings))
        plain.append(_tool(bench))
    means = []
    for watches, speed, cpu in (
        (plain, TOOL_PLAIN, TOOL_PLAIN_CPU),
        (transactional, TOOL_TRANSACTIONAL, TOOL_TRANSACTIONAL_CPU),
    ):
        means.append(statistics.mean(watch.result["MB/s"] for watch in watches))
        bench.note(speed, means[-1], watches[-1])
        gigabytes = sum(watch.result["bytes"] for watch in watches) / 1e9
        bench.note(cpu, sum(watch.broker_cpu_seconds for watch in watches) / gigabytes)
    bench.note(TOOL_KEPT, means[1] / means[0] * 100)


def _tool(bench: Bench, **settings: Any) -> Stopwatch:
    topic = bench.create_topic("tool-load")
    watch = java_tools.producer_performance(bench.broker, topic, len(VALUE), TOOL_RECORDS, "all", **settings)
    bench.delete_topics()
    return watch


class Load:
    """As many records as go through, with a wait for all of them now and then, which ends a transaction if there are
    any; adds up what it sent and how long that took. Each stretch has a producer of its own: some are slower by a
    third than others, and stay so."""

    def __init__(
        self, broker: Target, pause_after: float = PATIENCE_SECONDS, transactional_id: str = ""
    ) -> None:
        self._broker = broker
        self._pause_after = pause_after
        self._transactional_id = transactional_id
        self.watch = Stopwatch()
        self.megabytes = 0.0
        self.commit_seconds = 0.0  # from when all was acknowledged

    @property
    def speed(self) -> float:
        """Of all stretches together, in MB/s."""
        return self.megabytes / self.watch.seconds

    def run(self, topic: str) -> None:
        """One stretch, until all is acknowledged, and committed."""
        producer = _producer(self._broker, self._transactional_id)
        self._send(producer, topic, WARM_UP_SECONDS)
        with timed(self._broker) as watch:
            records, commit_seconds = self._send(producer, topic, STRETCH_SECONDS)
        self.commit_seconds += commit_seconds
        self.megabytes += records * len(VALUE) / 1e6
        self.watch.seconds += watch.seconds
        self.watch.broker_cpu_seconds += watch.broker_cpu_seconds
        self.watch.client, self.watch.client_waits = watch.client, watch.client_waits
        self.watch.cores, self.watch.broker_cores = watch.cores, watch.broker_cores
        self.watch.resident_mb = watch.resident_mb

    def _send(self, producer: Producer, topic: str, seconds: float) -> tuple[int, float]:
        """The records, and how long commits took."""
        records, commit_seconds = 0, 0.0
        end = time.perf_counter() + seconds
        while (now := time.perf_counter()) < end:
            if self._transactional_id:
                producer.begin_transaction()
            records += _send_until(producer, topic, min(end, now + self._pause_after))
            assert producer.flush(PATIENCE_SECONDS) == 0
            if self._transactional_id:
                acknowledged = time.perf_counter()
                producer.commit_transaction(PATIENCE_SECONDS)
                commit_seconds += time.perf_counter() - acknowledged
        return records, commit_seconds


def _send_until(producer: Producer, topic: str, moment: float) -> int:
    records = 0
    while time.perf_counter() < moment:
        for _ in range(100):
            try:
                producer.produce(topic, VALUE, partition=0)
            except (
                BufferError
            ):  # its own waits are of whole milliseconds, in which a quick broker has done all
                producer.poll(0)
                time.sleep(FULL_QUEUE_SECONDS)
                break
            records += 1
    return records


def _count_commits(broker: Target, producers: int, seconds: float) -> Stopwatch:
    """Transactions of one record for so long, all producers together."""
    clients = [_producer(broker, f"{producers}-{number}", **{"linger.ms": 0}) for number in range(producers)]
    counts = [0] * producers
    end = 0.0

    def commit(number: int) -> None:
        client = clients[number]
        while time.perf_counter() < end:
            client.begin_transaction()
            client.produce("one-record", b"x" * 100, partition=number)
            client.commit_transaction(PATIENCE_SECONDS)
            counts[number] += 1

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(producers)]
    with timed(broker) as watch:
        end = time.perf_counter() + seconds
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    watch.result["commits"] = sum(counts)
    return watch


def _producer(broker: Target, transactional_id: str = "", **settings: Any) -> Producer:
    own = {"transactional.id": transactional_id} if transactional_id else {}
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "log_level": 0,
            "enable.idempotence": True,
            "delivery.report.only.error": True,
            "linger.ms": 5,
            # What is queued when a commit is due is waited for: three of the largest batches keep the line busy.
            "queue.buffering.max.messages": 3_000,
            **own,
            **settings,
        }
    )
    if transactional_id:
        producer.init_transactions(PATIENCE_SECONDS)
    return producer


TRANSACTIONS_PART = Part(
    "transactions",
    TRANSACTIONS,
    (
        TOOL_PLAIN,
        TOOL_TRANSACTIONAL,
        TOOL_KEPT,
        PLAIN,
        WAITING,
        TRANSACTIONAL,
        KEPT,
        KEPT_OF_PLAIN,
        COMMITTING,
        PLAIN_CPU,
        TRANSACTIONAL_CPU,
        ONE,
        ONE_CPU,
        TWENTY,
        TWENTY_CPU,
    ),
    measure_transactions,
    seconds=150,
)
