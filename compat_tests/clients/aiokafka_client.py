"""aiokafka. It speaks the oldest protocol versions of the three, none of them flexible."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from compat_tests.clients.interface import PATIENCE_SECONDS, Message, Stored

T = TypeVar("T")


class AiokafkaClient:
    """Producer and consumer of aiokafka, each call in an event loop of its own."""

    name = "aiokafka"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> list[int]:
        async def send_all() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks="all" if acks == "all" else int(acks),
                enable_idempotence=idempotent,
            )
            async with producer:
                sent = [
                    await producer.send(
                        topic,
                        key=message.key,
                        value=message.value,
                        headers=list(message.headers),
                        partition=message.partition,
                        timestamp_ms=message.timestamp_ms,
                    )
                    for message in messages
                ]
                await producer.flush()
                answers = [await future for future in sent]
            return [-1 if acks == "0" else answer.offset for answer in answers]

        return _run(send_all())

    def read(
        self, bootstrap: str, topic: str, partition: int = 0, start: int = 0, count: int | None = None
    ) -> list[Stored]:
        async def read_all() -> list[Stored]:
            assigned = TopicPartition(topic, partition)
            found: list[Stored] = []
            async with _consumer(bootstrap) as consumer:
                consumer.assign([assigned])
                end = (await consumer.end_offsets([assigned]))[assigned] if count is None else None
                consumer.seek(assigned, start)
                while (
                    (len(found) < count) if count is not None else (await consumer.position(assigned) < end)
                ):
                    fetched = await consumer.getmany(assigned, timeout_ms=PATIENCE_SECONDS * 1000)
                    records = fetched.get(assigned, [])
                    assert records, f"no records after {len(found)} in {PATIENCE_SECONDS} s"
                    found += [
                        Stored(r.partition, r.offset, r.key, r.value, tuple(r.headers), r.timestamp)
                        for r in records
                    ]
            return found[:count]

        return _run(read_all())

    def watermarks(self, bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
        async def ask() -> tuple[int, int]:
            asked = TopicPartition(topic, partition)
            async with _consumer(bootstrap) as consumer:
                low = await consumer.beginning_offsets([asked])
                high = await consumer.end_offsets([asked])
            return low[asked], high[asked]

        return _run(ask())

    def offset_at(self, bootstrap: str, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        async def ask() -> int | None:
            asked = TopicPartition(topic, partition)
            async with _consumer(bootstrap) as consumer:
                answer = (await consumer.offsets_for_times({asked: timestamp_ms}))[asked]
            return None if answer is None else answer.offset

        return _run(ask())


def _run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, PATIENCE_SECONDS * 2))


@asynccontextmanager
async def _consumer(bootstrap: str) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, auto_offset_reset="none"
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()
