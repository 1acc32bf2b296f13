"""A member of a group in a thread of its own, which polls all the time as kafka-python wants it.

A poll that ends while kafka-python 3.0 joins a group may leave it joining for ever, so polls are long while it owns
nothing, and nobody waits for one member while another has to answer. The consumer is used by that thread alone: what
else is to be done with it is done there between two polls.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from compat_tests.matrix.drivers.serving import PATIENCE_SECONDS

POLL_MS = 100
JOIN_MS = 3_000
CLOSE_MS = 2_000


class Member:
    """A consumer that has subscribed."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer
        self._asked: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._news = threading.Condition()
        self._records: list[Any] = []
        self._assignment: set[TopicPartition] = set()
        self._error: Exception | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def poll(self, wait_ms: int) -> tuple[set[TopicPartition], list[Any]]:
        """What it owns, and the records that came; raises what a poll raised."""
        with self._news:
            self._news.wait_for(lambda: self._records or self._error, wait_ms / 1000)
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            owned = set(self._assignment)
            found = [each for each in self._records if (each.topic, each.partition) in owned]
            self._records = []
        for each in found:
            self._positions[TopicPartition(each.topic, each.partition)] = each.offset + 1
        return owned, found

    def commit(self, offsets: dict[TopicPartition, int] | None) -> None:
        """Commit these, or what was polled of what it owns."""
        with self._news:
            owned = set(self._assignment)
        if offsets is None:
            offsets = {place: offset for place, offset in self._positions.items() if place in owned}
        wanted = {place: OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
        self.ask(lambda: self._consumer.commit(wanted))

    def metadata(self) -> Any:
        """Who it is in its group."""
        return self.ask(self._consumer.group_metadata)

    def ask(self, what: Callable[[], Any]) -> Any:
        """Have the thread do something with the consumer."""
        done: Future[Any] = Future()
        self._asked.put((what, done))
        return done.result(PATIENCE_SECONDS)

    def close(self) -> None:
        """Leave."""
        self._ended = True
        self._thread.join(PATIENCE_SECONDS)
        self._consumer.close(timeout_ms=CLOSE_MS)

    def _run(self) -> None:
        while not self._ended:
            while not self._asked.empty():
                what, done = self._asked.get()
                try:
                    done.set_result(what())
                except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
                    done.set_exception(error)
            try:
                found = self._consumer.poll(timeout_ms=POLL_MS if self._consumer.assignment() else JOIN_MS)
            except Exception as error:  # noqa: BLE001 - the next poll of the case tells it
                self._tell([], error)
                continue
            self._tell([each for records in found.values() for each in records], None)

    def _tell(self, records: list[Any], error: Exception | None) -> None:
        with self._news:
            self._records += records
            self._error = error or self._error
            self._assignment = set(self._consumer.assignment())
            self._news.notify_all()
