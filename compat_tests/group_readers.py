"""Members of a group in stock clients, each in a thread of its own: read, commit, read on.

All readers of a case share a Ledger. It refuses what no group may do: hand out a record again whose offset was
committed before.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import aiokafka.coordinator.assignors.range
import aiokafka.coordinator.assignors.roundrobin
import aiokafka.coordinator.assignors.sticky.sticky_assignor
import confluent_kafka
import kafka.coordinator.assignors.range
import kafka.coordinator.assignors.roundrobin
import kafka.coordinator.assignors.sticky.sticky_assignor
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError as AioKafkaError
from kafka import KafkaConsumer
from kafka.errors import KafkaError

from compat_tests.kafka_python_listener import FreshOffsets

PATIENCE_SECONDS = 45
POLL_MS = 100
SESSION_TIMEOUT_MS = 6000

KAFKA_PYTHON_ASSIGNORS = {
    "range": kafka.coordinator.assignors.range.RangePartitionAssignor,
    "roundrobin": kafka.coordinator.assignors.roundrobin.RoundRobinPartitionAssignor,
    "sticky": kafka.coordinator.assignors.sticky.sticky_assignor.StickyPartitionAssignor,
}
AIOKAFKA_ASSIGNORS = {
    "range": aiokafka.coordinator.assignors.range.RangePartitionAssignor,
    "roundrobin": aiokafka.coordinator.assignors.roundrobin.RoundRobinPartitionAssignor,
    "sticky": aiokafka.coordinator.assignors.sticky.sticky_assignor.StickyPartitionAssignor,
}


class Ledger:
    """What was read and committed, by everybody."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.values: Counter[bytes] = Counter()
        self.committed: dict[int, int] = {}
        self.wrong: list[str] = []

    def read(self, partition: int, offset: int, value: bytes) -> None:
        with self._changed:
            if offset < self.committed.get(partition, 0):
                self.wrong.append(
                    f"{partition}:{offset} again, after {self.committed[partition]} was committed"
                )
            self.values[value] += 1
            self._changed.notify_all()

    def commit(self, positions: dict[int, int]) -> None:
        with self._changed:
            for partition, offset in positions.items():
                self.committed[partition] = max(offset, self.committed.get(partition, 0))
            self._changed.notify_all()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def fail(self, error: Exception) -> None:
        with self._changed:
            self.wrong.append(repr(error))
            self._changed.notify_all()

    def wait_for(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until it holds; what went wrong meanwhile ends the wait."""
        with self._changed:
            found = self._changed.wait_for(lambda: self.wrong or holds(), PATIENCE_SECONDS)
            assert self.wrong == []
            assert found, f"not within {PATIENCE_SECONDS} s: {what}"


class Reader:
    """One member. Subclasses fill in the client."""

    def __init__(self, bootstrap: str, topic: str, group_id: str, ledger: Ledger, **settings: Any) -> None:
        self.bootstrap, self.topic, self.group_id, self.ledger = bootstrap, topic, group_id, ledger
        self.settings = settings
        self.assigned: set[int] = set()
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Reader:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Leave the group."""
        self._stopping.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the client does not close"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            self.work()
        except Exception as error:  # noqa: BLE001 - it is raised again where the test stops the reader
            self.failure = error
            self.ledger.fail(error)
        self.owns(set())

    def work(self) -> None:
        raise AssertionError("a subclass has it")

    def owns(self, partitions: set[int]) -> None:
        self.assigned = partitions
        self.ledger.wake()


class KafkaPythonReader(Reader):
    def work(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=500,
            partition_assignment_strategy=[KAFKA_PYTHON_ASSIGNORS[self.settings["assignor"]]],
        )
        # Its sticky assignor leaves out a topic whose metadata has not come, and nobody notices later.
        consumer.partitions_for_topic(self.topic)
        consumer.subscribe([self.topic], listener=FreshOffsets(consumer))
        try:
            while not self._stopping.is_set():
                fetched = consumer.poll(timeout_ms=POLL_MS)
                self.owns({each.partition for each in consumer.assignment()})
                positions = {}
                for records in fetched.values():
                    for record in records:
                        self.ledger.read(record.partition, record.offset, record.value)
                        positions[record.partition] = record.offset + 1
                if positions:
                    try:
                        consumer.commit()
                    except KafkaError:
                        continue  # a rebalance came first
                    self.ledger.commit(positions)
        finally:
            consumer.close()


class ConfluentReader(Reader):
    def work(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group_id,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": 500,
                "partition.assignment.strategy": self.settings["assignor"],
            }
        )
        consumer.subscribe([self.topic])
        try:
            while not self._stopping.is_set():
                records: list[Any] = consumer.consume(100, POLL_MS / 1000)
                self.owns({each.partition for each in consumer.assignment()})
                positions = {}
                for record in records:
                    if record.error() is None:
                        self.ledger.read(record.partition(), record.offset(), record.value())
                        positions[record.partition()] = record.offset() + 1
                if positions:
                    wanted = [confluent_kafka.TopicPartition(self.topic, *each) for each in positions.items()]
                    try:
                        consumer.commit(offsets=wanted, asynchronous=False)
                    except confluent_kafka.KafkaException:
                        continue
                    self.ledger.commit(positions)
        finally:
            consumer.close()


class AiokafkaReader(Reader):
    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        consumer = AIOKafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            group_id=self.group_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=500,
            partition_assignment_strategy=[AIOKAFKA_ASSIGNORS[self.settings["assignor"]]],
        )
        await consumer.start()
        try:
            while not self._stopping.is_set():
                fetched = await consumer.getmany(timeout_ms=POLL_MS)
                self.owns({each.partition for each in consumer.assignment()})
                positions = {}
                for tp, records in fetched.items():
                    for record in records:
                        self.ledger.read(record.partition, record.offset, record.value)
                        positions[tp] = record.offset + 1
                if positions:
                    try:
                        await consumer.commit(positions)
                    except AioKafkaError:
                        continue
                    self.ledger.commit({tp.partition: offset for tp, offset in positions.items()})
        finally:
            await consumer.stop()
