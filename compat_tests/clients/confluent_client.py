"""confluent-kafka, that is librdkafka. It demands a group id, but with explicit offsets never uses it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from compat_tests.clients.interface import PATIENCE_SECONDS, Message, Stored


class ConfluentClient:
    """Producer and consumer of confluent-kafka."""

    name = "confluent-kafka"

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
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 2,
            }
        )
        offsets: dict[int, int] = {}
        failures: list[KafkaError] = []
        for number, message in enumerate(messages):

            def delivered(error: KafkaError | None, stored: Any, number: int = number) -> None:
                if error is not None:
                    failures.append(error)
                else:
                    offsets[number] = -1 if acks == "0" else stored.offset()

            producer.produce(
                topic,
                key=message.key,
                value=message.value,
                headers=list(message.headers),
                partition=message.partition,
                on_delivery=delivered,
                timestamp=message.timestamp_ms or 0,  # 0: now
            )
        left = producer.flush(PATIENCE_SECONDS)
        if failures:
            raise KafkaException(failures[0])
        assert left == 0, f"{left} messages were not acknowledged"
        return [offsets[number] for number in range(len(messages))]

    def read(
        self, bootstrap: str, topic: str, partition: int = 0, start: int = 0, count: int | None = None
    ) -> list[Stored]:
        found: list[Stored] = []
        with self._consumer(bootstrap) as consumer:
            consumer.assign([TopicPartition(topic, partition, start)])
            while count is None or len(found) < count:
                message = consumer.poll(PATIENCE_SECONDS)
                assert message is not None, f"no records after {len(found)} in {PATIENCE_SECONDS} s"
                error = message.error()
                if error is None:
                    found.append(_stored(message))
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                elif count is None:
                    break
        return found

    def watermarks(self, bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
        with self._consumer(bootstrap) as consumer:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE_SECONDS)
            return low, high

    def offset_at(self, bootstrap: str, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        with self._consumer(bootstrap) as consumer:
            asked = TopicPartition(topic, partition, timestamp_ms)
            [answer] = consumer.offsets_for_times([asked], PATIENCE_SECONDS)
            # librdkafka says "end" where the broker said that there is no such record.
            return None if answer.offset in (OFFSET_INVALID, -1) else answer.offset

    @contextmanager
    def _consumer(self, bootstrap: str) -> Iterator[Consumer]:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                # It learns of the end from an empty answer, for which it would wait half a second each time.
                "fetch.wait.max.ms": 50,
            }
        )
        try:
            yield consumer
        finally:
            consumer.close()


def _stored(message: Any) -> Stored:
    _kind, timestamp_ms = message.timestamp()
    headers = tuple(message.headers() or ())
    return Stored(
        message.partition(), message.offset(), message.key(), message.value(), headers, timestamp_ms
    )
