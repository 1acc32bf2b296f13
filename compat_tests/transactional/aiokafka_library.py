"""aiokafka, whose calls are awaited one by one in a loop of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata

from compat_tests.transactional.obeying import PATIENCE_SECONDS, Positions

# It has no error of its own for a call after a fatal error: an assertion of its state machine fails.
ERRORS = (KafkaError, AssertionError, TimeoutError)
T = TypeVar("T")


class Client:
    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        self._producer: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, PATIENCE_SECONDS))

    @property
    def producer(self) -> AIOKafkaProducer:
        assert self._producer is not None, "it is not initialised"
        return self._producer

    def init(self) -> None:
        self._run(self._init())

    async def _init(self) -> None:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._settings["bootstrap.servers"],
            transactional_id=self._settings["transactional.id"],
            transaction_timeout_ms=int(self._settings.get("transaction.timeout.ms", "60000")),
            retry_backoff_ms=20,
        )
        await self._producer.start()

    def begin(self) -> None:
        self._run(self.producer.begin_transaction())

    def send(self, topic: str, records: list[tuple[int, str]]) -> list[int]:
        return self._run(self._send(topic, records))

    async def _send(self, topic: str, records: list[tuple[int, str]]) -> list[int]:
        futures = [
            await self.producer.send(topic, value.encode(), partition=partition)
            for partition, value in records
        ]
        return [(await future).offset for future in futures]

    def offsets(self, group: str, topic: str, positions: Positions) -> None:
        committed = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, "")
            for partition, offset in positions.items()
        }
        self._run(self.producer.send_offsets_to_transaction(committed, group))

    def commit(self) -> None:
        self._run(self.producer.commit_transaction())

    def abort(self) -> None:
        self._run(self.producer.abort_transaction())

    def read(self, topic: str, partition: int, isolation: str) -> list[tuple[int, str]]:
        return self._run(self._read(TopicPartition(topic, partition), isolation))

    async def _read(self, place: TopicPartition, isolation: str) -> list[tuple[int, str]]:
        consumer = await self._make_consumer(None, isolation)
        consumer.assign([place])
        end = (await consumer.end_offsets([place]))[place]
        consumer.seek(place, 0)
        found: list[tuple[int, str]] = []
        while await consumer.position(place) < end:
            records = (await consumer.getmany(place, timeout_ms=100)).get(place, [])
            found += [(record.offset, record.value.decode()) for record in records]
        await consumer.stop()
        return found

    def consume(self, topic: str, partitions: int, group: str, way: str) -> None:
        self._run(self._consume(topic, partitions, group, way))

    async def _consume(self, topic: str, partitions: int, group: str, way: str) -> None:
        self._consumer = await self._make_consumer(group)
        if way == "subscribe":
            self._consumer.subscribe([topic])
            return
        self._consumer.assign([TopicPartition(topic, partition) for partition in range(partitions)])

    def poll(self, count: int) -> list[tuple[int, int, str]]:
        assert self._consumer is not None
        found = self._run(self._consumer.getmany(timeout_ms=100, max_records=count))
        return [(r.partition, r.offset, r.value.decode()) for records in found.values() for r in records]

    async def _make_consumer(self, group: str | None, isolation: str = "read_committed") -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._settings["bootstrap.servers"],
            group_id=group,
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            session_timeout_ms=3000,
            heartbeat_interval_ms=300,
        )
        await consumer.start()
        return consumer
