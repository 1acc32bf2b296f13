"""Produce and fetch, without a group."""

import time
from typing import Any

from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from compat_tests.matrix.drivers.answers import fetched
from compat_tests.matrix.drivers.kafka_python_driver.library import Library, name_of
from compat_tests.matrix.drivers.serving import PATIENCE_MS, PATIENCE_SECONDS, Unsupported, decoded


class Records(Library):
    """A producer or a consumer for each call."""

    def produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: int = -1,
        codec: str = "none",
        idempotent: bool = False,
        max_request_bytes: int | None = None,
    ) -> list[dict[str, Any]]:
        producer = KafkaProducer(
            acks=acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            max_request_size=max_request_bytes or 1_048_576,
            max_block_ms=PATIENCE_MS // 4,
            delivery_timeout_ms=PATIENCE_MS + 1000,
            **self.settings,
        )
        try:
            futures = [self._sent(producer, topic, record) for record in records]
            producer.flush(PATIENCE_SECONDS)
            return [_told(each) for each in futures]
        finally:
            producer.close()

    def _sent(self, producer: KafkaProducer, topic: str, record: dict[str, Any]) -> Any:
        """The future of a record, or the error with which it was refused at once."""
        if record["key"] is None and record["value"] is None:
            raise Unsupported("kafka-python sends no record without a key and a value")
        if any(each is None for _, each in record.get("headers") or []):
            raise Unsupported("kafka-python sends no headers that are null")
        try:
            return producer.send(
                topic,
                key=decoded(record["key"]),
                value=decoded(record["value"]),
                headers=[(name, decoded(each)) for name, each in record.get("headers") or []],
                partition=record["partition"],
                timestamp_ms=record.get("timestamp"),
            )
        except (KafkaError, ValueError) as error:
            return error

    def fetch(
        self, topic: str, partition: int, offset: int, count: int | None, isolation: str = "read_uncommitted"
    ) -> list[dict[str, Any]]:
        place = TopicPartition(topic, partition)
        consumer = self.consumer(
            auto_offset_reset="none",
            isolation_level=isolation,
            fetch_max_wait_ms=20 if count is None else 500,
            max_partition_fetch_bytes=10_000_000,
        )
        try:
            # It hopes for an unknown topic for ever.
            if partition not in (consumer.partitions_for_topic(topic) or ()):
                raise UnknownTopicOrPartitionError(topic)
            consumer.assign([place])
            end = consumer.end_offsets([place])[place] if count is None else None
            consumer.seek(place, offset)
            found: list[Any] = []
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(found) < count if count is not None else consumer.position(place) < end:
                found += consumer.poll(timeout_ms=500).get(place, [])
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{len(found)} records came")
            return [fetched(each) for each in found[:count]]
        finally:
            consumer.close()


def _told(sent: Any) -> dict[str, Any]:
    try:
        if isinstance(sent, Exception):
            raise sent
        stored = sent.get(PATIENCE_SECONDS)
    except (KafkaError, ValueError) as error:
        return {"error": name_of(error)}
    return {"partition": stored.partition, "offset": stored.offset}
