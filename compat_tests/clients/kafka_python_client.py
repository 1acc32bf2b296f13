"""kafka-python. `api_version` pins the protocol versions that it would use with an older broker."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compat_tests.clients.interface import PATIENCE_SECONDS, Message, Stored


class KafkaPythonClient:
    """Producer and consumer of kafka-python."""

    def __init__(self, api_version: tuple[int, ...] | None = None) -> None:
        self.api_version = api_version
        self.name = "kafka-python" + ("" if api_version is None else "-as-" + ".".join(map(str, api_version)))

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
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            api_version=self.api_version,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    key=message.key,
                    value=message.value,
                    headers=list(message.headers),
                    partition=message.partition,
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            producer.flush(PATIENCE_SECONDS)
            answers = [future.get(PATIENCE_SECONDS) for future in futures]
            return [-1 if acks == "0" else answer.offset for answer in answers]
        finally:
            producer.close()

    def read(
        self, bootstrap: str, topic: str, partition: int = 0, start: int = 0, count: int | None = None
    ) -> list[Stored]:
        assigned = TopicPartition(topic, partition)
        with self._consumer(bootstrap) as consumer:
            consumer.assign([assigned])
            end = consumer.end_offsets([assigned])[assigned] if count is None else None
            consumer.seek(assigned, start)
            found: list[Stored] = []
            while (len(found) < count) if count is not None else (consumer.position(assigned) < end):
                records = consumer.poll(timeout_ms=PATIENCE_SECONDS * 1000).get(assigned, [])
                assert records, f"no records after {len(found)} in {PATIENCE_SECONDS} s"
                found += [
                    Stored(r.partition, r.offset, r.key, r.value, tuple(r.headers or ()), r.timestamp)
                    for r in records
                ]
            return found[:count]

    def watermarks(self, bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
        asked = TopicPartition(topic, partition)
        with self._consumer(bootstrap) as consumer:
            return consumer.beginning_offsets([asked])[asked], consumer.end_offsets([asked])[asked]

    def offset_at(self, bootstrap: str, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        asked = TopicPartition(topic, partition)
        with self._consumer(bootstrap) as consumer:
            answer = consumer.offsets_for_times({asked: timestamp_ms})[asked]
            return None if answer is None else answer.offset

    @contextmanager
    def _consumer(self, bootstrap: str) -> Iterator[Any]:
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            api_version=self.api_version,
        )
        try:
            yield consumer
        finally:
            consumer.close()
