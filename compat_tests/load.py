"""A load that runs while something happens to the broker: numbered records, and what was acknowledged of them."""

import threading
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, Producer

PATIENCE_SECONDS = 60


class Load:
    """Produces with librdkafka in a thread of its own until the `with` block ends, through restarts of the broker.

    `acknowledged` maps (partition, value) to the offset that the broker confirmed. With `pause_seconds` it rests after
    every hundred records, and leaves the machine to others.
    """

    def __init__(
        self, bootstrap: str, topic: str, *, partitions: int, idempotent: bool, pause_seconds: float = 0
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self.acknowledged: dict[tuple[int, bytes], int] = {}
        self.failed: list[str] = []
        self.sent = 0
        self._pause_seconds = pause_seconds
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": idempotent,
                "linger.ms": 1,
                # A bounded queue: at most this many records are in doubt when the broker dies.
                "queue.buffering.max.messages": 300,
                "message.timeout.ms": PATIENCE_SECONDS * 1000,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="load", daemon=True)

    def wait_for_acknowledgements(self, more: int) -> None:
        """Return once so many more records are acknowledged than now."""
        with self._changed:
            goal = len(self.acknowledged) + more
            arrived = self._changed.wait_for(lambda: len(self.acknowledged) >= goal, PATIENCE_SECONDS)
        assert arrived, (
            f"only {len(self.acknowledged)} of {goal} records acknowledged; failed: {self.failed[:3]}"
        )

    def _produce(self) -> None:
        while not self._stop.is_set():
            value = b"record-%d" % self.sent
            try:
                self._producer.produce(
                    self.topic, value, partition=self.sent % self.partitions, on_delivery=self._delivered
                )
                self.sent += 1
            except BufferError:
                self._producer.poll(0.05)
            self._producer.poll(0)
            if self._pause_seconds and self.sent % 100 == 0:
                self._stop.wait(self._pause_seconds)

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        with self._changed:
            if error is not None:
                self.failed.append(error.str())
            else:
                self.acknowledged[message.partition(), message.value()] = message.offset()
            self._changed.notify_all()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(PATIENCE_SECONDS if kind is None else 0)
