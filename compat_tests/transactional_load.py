"""Transactions that go on whatever happens to the broker: who is refused starts anew with the same id."""

from __future__ import annotations

import random
import threading

from compat_tests.transactional.process import ClientFailed
from compat_tests.transactional_run import PARTITIONS, RecordedProducer, TransactionRun


class Writer:
    """Commits and aborts transactions of its own on the target, in a thread, until told to stop."""

    def __init__(self, run: TransactionRun, library: str, seed: int) -> None:
        self._run, self._library = run, library
        self._chance = random.Random(seed)
        self._id = f"{run.target}-writer-{seed}"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._number = 0
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current transaction; what others had left open is aborted."""
        self._stop.set()
        self._thread.join()
        self._started().client.end_input()

    def _write(self) -> None:
        producer = self._started()
        while not self._stop.is_set():
            self._number += 1
            values = {
                partition: [f"{self._id}-{self._number}-{partition}"]
                for partition in self._chance.sample(range(PARTITIONS), self._chance.randint(1, PARTITIONS))
            }
            try:
                producer.transact(values, self._chance.choice(["commit", "commit", "abort"]))
            except ClientFailed:
                producer.client.kill()
                producer = self._started()
        producer.client.kill()

    def _started(self) -> RecordedProducer:
        while True:
            producer = self._run.producer(self._library, self._id)
            try:
                producer.init()
                return producer
            except ClientFailed:
                producer.client.kill()  # the broker is away
