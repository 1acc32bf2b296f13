"""`python -m benchmarks.transactions`: what transactions cost, on Ottla and a real Kafka in turns in one run.

The same load with a commit every 100 ms and without transactions, in short stretches by turns, so that both meet the
same machine; and how many transactions of one record are committed in a second, by one producer and by twenty. It
writes its part of docs/benchmarks.md; QUICK=1 for one round.
"""

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

from benchmarks.clients import PATIENCE_SECONDS, Stopwatch, create_topic, timed
from benchmarks.measures import Figures, Measure
from benchmarks.process_figures import OtherWork
from benchmarks.report import TRANSACTIONS, caveat, shown, table, write_section
from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.real import KAFKA_DEFAULT_OPTIONS, RealKafka
from compat_tests.ottla_process import OttlaProcess

VALUE = bytes(1024)
STRETCH_SECONDS, STRETCHES, WARM_UP_STRETCHES = 1.0, 15, 4
COMMIT_SECONDS = 0.1
COUNT_SECONDS = 5.0
PRODUCERS = 20
BROKERS: dict[str, Callable[[], BrokerProcess]] = {
    "ottla": OttlaProcess,
    "kafka": lambda: RealKafka(java_options=KAFKA_DEFAULT_OPTIONS),
}
PLAIN = Measure("produce 1 KB records, idempotent", "MB/s", True)
TRANSACTIONAL = Measure("the same with a commit every 100 ms", "MB/s", True)
KEPT = Measure("throughput that is kept with transactions", "%", True)
PLAIN_CPU = Measure("produce 1 KB records, idempotent: broker CPU", "s/GB", False)
TRANSACTIONAL_CPU = Measure("the same with a commit every 100 ms: broker CPU", "s/GB", False)
ONE = Measure("transactions of one record, 1 producer", "/s", True)
ONE_CPU = Measure("transactions of one record: broker CPU each", "µs", False)
TWENTY = Measure(f"transactions of one record, {PRODUCERS} producers", "/s", True)
TWENTY_CPU = Measure(f"transactions of one record, {PRODUCERS} producers: broker CPU each", "µs", False)


def main() -> int:
    """Measure everything, print the table, write it into the page."""
    rounds = 1 if os.environ.get("QUICK", "") not in ("", "0") else 3
    others = OtherWork()
    results: dict[str, list[Figures]] = {name: [] for name in BROKERS}
    for _ in range(rounds):
        for name, make in BROKERS.items():
            with make() as broker:
                figures = measure_transactions(broker)
                broker.stop()
            results[name].append(figures)
            for what, value in figures.items():
                print(f"{name:6} {what.title:64} {shown(what, value):>14}", flush=True)
    other_cores = others.cores()
    print(f"\n{table(results)}\n\n{caveat(other_cores)}", end="")
    print(f"written to {write_section(TRANSACTIONS, results, other_cores)}")
    return 0


def measure_transactions(broker: BrokerProcess) -> Figures:
    """All figures of one broker."""
    create_topic(broker, "load")
    create_topic(broker, "small", partitions=PRODUCERS)
    plain, transactional = Load(broker), Load(broker, "load")
    for _ in range(WARM_UP_STRETCHES):
        plain.run(STRETCH_SECONDS)
        transactional.run(STRETCH_SECONDS)
    plain.forget()
    transactional.forget()
    # Neighbours are compared, and the median taken: the machine may be slow for a while.
    kept = []
    for _ in range(STRETCHES):
        before = plain.run(STRETCH_SECONDS)
        kept.append(transactional.run(STRETCH_SECONDS) / before)
    figures: Figures = {
        PLAIN: plain.megabytes / plain.watch.seconds,
        TRANSACTIONAL: transactional.megabytes / transactional.watch.seconds,
        PLAIN_CPU: plain.watch.broker_cpu_seconds / plain.megabytes * 1000,
        TRANSACTIONAL_CPU: transactional.watch.broker_cpu_seconds / transactional.megabytes * 1000,
    }
    figures[KEPT] = statistics.median(kept) * 100
    _count_commits(broker, PRODUCERS, COUNT_SECONDS / 2)
    figures[ONE], figures[ONE_CPU] = _count_commits(broker, 1, COUNT_SECONDS)
    figures[TWENTY], figures[TWENTY_CPU] = _count_commits(broker, PRODUCERS, COUNT_SECONDS)
    order = (PLAIN, TRANSACTIONAL, KEPT, PLAIN_CPU, TRANSACTIONAL_CPU, ONE, ONE_CPU, TWENTY, TWENTY_CPU)
    return {what: figures[what] for what in order}


class Load:
    """As many records as go through, with or without transactions; adds up what it sent and how long that took."""

    def __init__(self, broker: BrokerProcess, transactional_id: str = "") -> None:
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


def _count_commits(broker: BrokerProcess, producers: int, seconds: float) -> tuple[float, float]:
    """Transactions of one record in a second, all producers together, and the broker's CPU for each in microseconds."""
    clients = [_producer(broker, f"{producers}-{number}", **{"linger.ms": 0}) for number in range(producers)]
    counts = [0] * producers
    end = 0.0

    def commit(number: int) -> None:
        client = clients[number]
        while time.perf_counter() < end:
            client.begin_transaction()
            client.produce("small", b"x" * 100, partition=number)
            client.commit_transaction(PATIENCE_SECONDS)
            counts[number] += 1

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(producers)]
    with timed(broker) as watch:
        end = time.perf_counter() + seconds
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sum(counts) / watch.seconds, watch.broker_cpu_seconds / sum(counts) * 1e6


def _producer(broker: BrokerProcess, transactional_id: str = "", **settings: Any) -> Producer:
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


if __name__ == "__main__":
    sys.exit(main())
