"""Produce and fetch, without a group."""

import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from compat_tests.matrix.drivers.confluent_kafka_driver.library import Library, name_of
from compat_tests.matrix.drivers.serving import PATIENCE_SECONDS, decoded, encoded

ANY_PARTITION = -1


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
        producer = self.producer(
            {
                "acks": acks,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                **({} if max_request_bytes is None else {"message.max.bytes": max_request_bytes}),
            }
        )
        wanted = [
            (record["partition"], decoded(record["key"]), decoded(record["value"]), record)
            for record in records
        ]
        found = [{"error": "LOCAL"} for _ in records]
        for number, (partition, key, value, record) in enumerate(wanted):

            def delivered(error: KafkaError | None, stored: Message, number: int = number) -> None:
                found[number] = _told(error, stored)

            try:
                producer.produce(
                    topic,
                    key=key,
                    value=value,
                    headers=[(name, decoded(each)) for name, each in record.get("headers") or []],
                    partition=ANY_PARTITION if partition is None else partition,
                    timestamp=record.get("timestamp") or 0,
                    on_delivery=delivered,
                )
            except KafkaException as error:  # it refuses what is too large at once
                found[number] = {"error": name_of(error)}
        producer.flush(PATIENCE_SECONDS)
        return found

    def producer(self, settings: dict[str, Any]) -> Producer:
        """One that gives up in time."""
        patience_ms = int(PATIENCE_SECONDS * 1000)
        return Producer(
            {
                **self.settings,
                "linger.ms": 2,
                "message.timeout.ms": patience_ms,
                **settings,
            }
        )

    def fetch(
        self, topic: str, partition: int, offset: int, count: int | None, isolation: str = "read_uncommitted"
    ) -> list[dict[str, Any]]:
        consumer = self.consumer(
            auto_offset_reset="error",
            isolation_level=isolation,
            enable_partition_eof=True,
            # It learns of the end from an empty answer, for which it would wait half a second each time.
            fetch_wait_max_ms=20 if count is None else 500,
            fetch_message_max_bytes=10_000_000,
        )
        try:
            # It hopes for an unknown topic, and for an unknown partition, for ever.
            known = consumer.list_topics(topic, PATIENCE_SECONDS).topics[topic]
            if known.error is not None:
                raise KafkaException(known.error)
            if partition not in known.partitions:
                raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
            consumer.assign([TopicPartition(topic, partition, offset)])
            found: list[dict[str, Any]] = []
            deadline = time.monotonic() + PATIENCE_SECONDS
            while count is None or len(found) < count:
                message = consumer.poll(max(deadline - time.monotonic(), 0))
                if message is None:
                    raise TimeoutError(f"{len(found)} records came")
                error = message.error()
                if error is None:
                    found.append(_fetched(message))
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                elif count is None:
                    break
            return found
        finally:
            consumer.close()


def _told(error: KafkaError | None, stored: Message) -> dict[str, Any]:
    if error is not None:
        return {"error": name_of(error)}
    offset = stored.offset()
    return {"partition": stored.partition(), "offset": -1 if offset is None or offset < 0 else offset}


def _fetched(message: Any) -> dict[str, Any]:
    return {
        "offset": message.offset(),
        "key": encoded(message.key()),
        "value": encoded(message.value()),
        "headers": [[name, encoded(value)] for name, value in message.headers() or []],
        "timestamp": message.timestamp()[1],
    }
