"""Sending the activity, at its pace, from a thread beside the pipeline."""

from __future__ import annotations

import threading
import time
from itertools import islice

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from spark_demo.events import Arrival, Settings, arrivals, user_changes
from spark_demo.formats import Format
from spark_demo.names import ACTIVITY, USERS

_SLICE_SECONDS = 0.05
_FLUSH_SECONDS = 60


class SendingFailed(RuntimeError):
    """Not everything could be sent."""


class ActivitySource:
    """Sends `seconds` of activity once `start` is called; `join` waits for the end and tells of failures."""

    def __init__(self, bootstrap: str, settings: Settings, written: Format, seconds: int) -> None:
        self._settings = settings
        self._arrivals = arrivals(settings, written, settings.events_per_second * seconds)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,  # what fails is told by `join`
                "enable.idempotence": True,
                "linger.ms": 20,
                "compression.type": "lz4",
            }
        )
        self._thread = threading.Thread(target=self._send_all, name="activity")
        self._failure: BaseException | str | None = None
        self.sent = 0

    def send_users(self) -> None:
        """Fill the topic of users."""
        for key, value in user_changes(self._settings):
            self._send(USERS, key, value)
        self._flush()

    def send_first(self) -> None:
        """The first second of it, as fast as it goes."""
        for arrival in islice(self._arrivals, self._settings.events_per_second):
            self._send_arrival(arrival)
        self._flush()

    def start(self) -> None:
        """The rest, at their pace."""
        self._thread.start()

    @property
    def is_sending(self) -> bool:
        return self._thread.is_alive()

    def join(self) -> None:
        """Raises SendingFailed."""
        self._thread.join()
        if self._failure is not None:
            raise SendingFailed(str(self._failure))

    def _send_all(self) -> None:
        try:
            started, first = time.monotonic(), self.sent
            for arrival in self._arrivals:
                while self.sent - first > (time.monotonic() - started) * self._settings.events_per_second:
                    self._producer.poll(_SLICE_SECONDS)
                self._send_arrival(arrival)
            self._flush()
        except (KafkaException, OSError) as error:  # told by join, to whoever can do something about it
            self._failure = error

    def _send_arrival(self, arrival: Arrival) -> None:
        now: list[tuple[str, str | bytes | None]] = [("sent-at", str(time.time_ns() // 1_000_000))]
        self._send(ACTIVITY, arrival.key, arrival.value, arrival.timestamp_ms, now)
        self.sent += 1

    def _send(
        self,
        topic: str,
        key: bytes,
        value: bytes | None,
        timestamp_ms: int = 0,
        headers: list[tuple[str, str | bytes | None]] | None = None,
    ) -> None:
        while True:
            try:
                self._producer.produce(
                    topic, value, key, timestamp=timestamp_ms, headers=headers, on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(_SLICE_SECONDS)
            else:
                return

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failure = str(error)

    def _flush(self) -> None:
        left = self._producer.flush(_FLUSH_SECONDS)
        if left:
            self._failure = f"{left} records were not delivered in {_FLUSH_SECONDS} s"
