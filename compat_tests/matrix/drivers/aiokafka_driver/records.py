"""Produce, fetch, and offsets by time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from compat_tests.matrix.drivers.aiokafka_driver.library import LIBRARY_SECONDS, Library
from compat_tests.matrix.drivers.answers import fetched
from compat_tests.matrix.drivers.serving import Unsupported, decoded


class Records(Library):
    """A producer or a consumer for each call."""

    async def produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: int = -1,
        codec: str = "none",
        idempotent: bool = False,
        max_request_bytes: int | None = None,
    ) -> list[dict[str, Any]]:
        limit = {} if max_request_bytes is None else {"max_request_size": max_request_bytes}
        producer = AIOKafkaProducer(
            **self.settings,
            acks="all" if acks == -1 else acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            **limit,
        )
        await producer.start()
        try:
            sent = [await self._send(producer, topic, record) for record in records]
            return [
                await self._acknowledged(each, record) for each, record in zip(sent, records, strict=True)
            ]
        finally:
            await producer.stop()

    async def _send(
        self, producer: AIOKafkaProducer, topic: str, record: dict[str, Any]
    ) -> "asyncio.Future[Any] | None":
        if record.get("key") is None and record.get("value") is None:
            raise Unsupported("aiokafka sends no record without both key and value")
        try:
            future: asyncio.Future[Any] = await producer.send(
                topic,
                key=decoded(record.get("key")),
                value=decoded(record.get("value")),
                partition=record.get("partition"),
                timestamp_ms=record.get("timestamp"),
                headers=[(name, decoded(value)) for name, value in record.get("headers") or []],
            )
        except (KafkaError, AssertionError):  # refused before anything was sent
            return None
        return future

    async def _acknowledged(
        self, future: "asyncio.Future[Any] | None", record: dict[str, Any]
    ) -> dict[str, Any]:
        if future is None:
            return {"error": "LOCAL"}
        try:
            answer = await asyncio.wait_for(future, LIBRARY_SECONDS)
        except KafkaError as error:
            return {"error": self.name_of(error)}
        if answer is None:  # acks 0
            return {"partition": record.get("partition"), "offset": -1}
        return {"partition": answer.partition, "offset": answer.offset}

    @asynccontextmanager
    async def _reader(self, isolation: str | None = None) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(
            **self.settings,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level=isolation or "read_uncommitted",
            fetch_max_wait_ms=100,
        )
        await consumer.start()
        try:
            yield consumer
        finally:
            await consumer.stop()

    async def _must_exist(self, topic: str) -> None:
        """It asks for topics so that the broker may create them, which nobody expects of a reader."""
        if topic not in await (await self.admin()).list_topics():
            raise Unsupported("aiokafka lets the broker create a topic that it reads")

    async def fetch(
        self, topic: str, partition: int, offset: int, count: int | None, isolation: str | None = None
    ) -> list[dict[str, Any]]:
        await self._must_exist(topic)
        place = TopicPartition(topic, partition)
        found: list[Any] = []
        async with asyncio.timeout(LIBRARY_SECONDS), self._reader(isolation) as consumer:
            consumer.assign([place])
            end = (await consumer.end_offsets([place]))[place] if count is None else -1
            consumer.seek(place, offset)
            position = offset
            # One read at least: only that tells of an offset out of range.
            while not found or (len(found) < count if count is not None else position < end):
                more = await consumer.getmany(place, timeout_ms=200, max_records=count)
                found += more.get(place, [])
                position = await consumer.position(place)
                if count is None and not found and position >= end:
                    break
        return [fetched(record) for record in found[:count] if count is not None or record.offset < end]

    async def list_offsets(self, topic: str, partition: int, at: str | int) -> dict[str, int]:
        if isinstance(at, str) and at not in ("earliest", "latest"):
            raise Unsupported(f"aiokafka does not look for the offset of {at}")
        await self._must_exist(topic)
        place = TopicPartition(topic, partition)
        async with asyncio.timeout(LIBRARY_SECONDS), self._reader() as consumer:
            if at == "earliest":
                return {"offset": (await consumer.beginning_offsets([place]))[place], "timestamp": -1}
            if at == "latest":
                return {"offset": (await consumer.end_offsets([place]))[place], "timestamp": -1}
            found = (await consumer.offsets_for_times({place: at}))[place]
        if found is None:
            return {"offset": -1, "timestamp": -1}
        return {"offset": found.offset, "timestamp": found.timestamp}
