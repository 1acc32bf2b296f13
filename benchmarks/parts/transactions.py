"""What transactions cost: the same load with a commit every 100 ms and without transactions, in short stretches by
turns, so that both meet the same machine; and how many transactions of one record are committed in a second, by one
producer and by twenty.
"""

import statistics
import threading
import time
from typing import Any

from confluent_kafka import Producer

from benchmarks.bench import Bench, Part
from benchmarks.clients import PATIENCE_SECONDS
from benchmarks.measures import Aim, Measure
from benchmarks.process_figures import Stopwatch, Target, timed
from benchmarks.report import TRANSACTIONS

VALUE = bytes(1024)
STRETCH_SECONDS, STRETCHES, WARM_UP_STRETCHES = 1.0, 7, 1
QUICK_STRETCHES = 2
COMMIT_SECONDS = 0.1
COUNT_SECONDS, QUICK_COUNT_SECONDS = 4.0, 1.0
PRODUCERS = 20
PLAIN = Measure("produce 1 KB records, idempotent", "MB/s", True)
TRANSACTIONAL = Measure("the same with a commit every 100 ms", "MB/s", True)
KEPT = Measure("throughput that is kept with transactions", "%", True, Aim(value_at_least=97))
PLAIN_CPU = Measure("produce 1 KB records, idempotent: broker CPU", "s/GB", False)
TRANSACTIONAL_CPU = Measure("the same with a commit every 100 ms: broker CPU", "s/GB", False)
ONE = Measure("transactions of one record, 1 producer", "/s", True)
ONE_CPU = Measure("transactions of one record: broker CPU each", "µs", False)
TWENTY = Measure(f"transactions of one record, {PRODUCERS} producers", "/s", True)
TWENTY_CPU = Measure(f"transactions of one record, {PRODUCERS} producers: broker CPU each", "µs", False)


def measure_transactions(bench: Bench) -> None:
    """All figures of one broker."""
    broker = bench.broker
    bench.create_topic("load")
    bench.create_topic("one-record", PRODUCERS)
    plain, transactional = Load(broker), Load(broker, "load")
    for _ in range(WARM_UP_STRETCHES):
        plain.run(STRETCH_SECONDS)
        transactional.run(STRETCH_SECONDS)
    plain.forget()
    transactional.forget()
    # Neighbours are compared, and the median taken: the machine may be slow for a while.
    kept = []
    for _ in range(bench.size(STRETCHES, QUICK_STRETCHES)):
        before = plain.run(STRETCH_SECONDS)
        kept.append(transactional.run(STRETCH_SECONDS) / before)
    bench.note(PLAIN, plain.megabytes / plain.watch.seconds, plain.watch)
    bench.note(TRANSACTIONAL, transactional.megabytes / transactional.watch.seconds, transactional.watch)
    bench.note(KEPT, statistics.median(kept) * 100)
    bench.note(PLAIN_CPU, plain.watch.broker_cpu_seconds / plain.megabytes * 1000)
    bench.note(TRANSACTIONAL_CPU, transactional.watch.broker_cpu_seconds / transactional.megabytes * 1000)
    seconds = bench.size(COUNT_SECONDS, QUICK_COUNT_SECONDS)
    _count_commits(broker, PRODUCERS, seconds / 2)
    for measure, cpu, producers in ((ONE, ONE_CPU, 1), (TWENTY, TWENTY_CPU, PRODUCERS)):
        watch = _count_commits(broker, producers, seconds)
        bench.note(measure, watch.result["commits"] / watch.seconds, watch)
        bench.note(cpu, watch.broker_cpu_seconds / watch.result["commits"] * 1e6)


class Load:
    """As many records as go through, with or without transactions; adds up what it sent and how long that took."""

    def __init__(self, broker: Target, transactional_id: str = "") -> None:
        self._broker = broker
        self._is_transactional = bool(transactional_id)
        self._producer = _producer(broker, transactional_id)
        self.forget()

    def forget(self) -> None:
        """Count from here."""
        self.watch = Stopwatch()
        self.megabytes = 0.0

    def run(self, seconds: float) -> float:
        """Send for so long, and wait until all is acknowledged, and committed; the records per second."""
        records = 0
        with timed(self._broker) as watch:
            end = time.perf_counter() + seconds
            while (now := time.perf_counter()) < end:
                if self._is_transactional:
                    self._producer.begin_transaction()
                    records += self._send_until(min(end, now + COMMIT_SECONDS))
                    self._producer.commit_transaction(PATIENCE_SECONDS)
                else:
                    records += self._send_until(end)
                    assert self._producer.flush(PATIENCE_SECONDS) == 0
        self.megabytes += records * len(VALUE) / 1e6
        self.watch.seconds += watch.seconds
        self.watch.broker_cpu_seconds += watch.broker_cpu_seconds
        self.watch.client, self.watch.client_waits, self.watch.cores = (
            watch.client,
            watch.client_waits,
            watch.cores,
        )
        self.watch.resident_mb = watch.resident_mb
        return records / watch.seconds

    def _send_until(self, moment: float) -> int:
        records = 0
        while time.perf_counter() < moment:
            for _ in range(100):
                try:
                    self._producer.produce("load", VALUE, partition=0)
                except BufferError:
                    self._producer.poll(0.001)
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
            # What is queued when a commit is due is waited for: about as much as goes out in a few dozen milliseconds.
            "queue.buffering.max.messages": 10_000,
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
    (PLAIN, TRANSACTIONAL, KEPT, PLAIN_CPU, TRANSACTIONAL_CPU, ONE, ONE_CPU, TWENTY, TWENTY_CPU),
    measure_transactions,
    seconds=45,
)
