"""librdkafka through confluent-kafka."""

from __future__ import annotations

from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from compat_tests.transactional.obeying import PATIENCE_SECONDS, Positions

# A fatal error that comes while a delivery is reported shows as the cause of a SystemError.
ERRORS = (KafkaException, SystemError)


class Client:
    def __init__(self, settings: dict[str, str]) -> None:
        self._bootstrap = settings["bootstrap.servers"]
        self._consumer: Consumer | None = None
        own: dict[str, Any] = {"linger.ms": 1, "retry.backoff.ms": 20, "log_level": 0}
        self._producer = Producer({**own, **settings}) if "transactional.id" in settings else None

    @property
    def producer(self) -> Producer:
        assert self._producer is not None, "it has no transactional id"
        return self._producer

    def init(self) -> None:
        self.producer.init_transactions(PATIENCE_SECONDS)

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, records: list[tuple[int, str]]) -> list[int]:
        offsets: dict[int, int] = {}
        failures: list[KafkaError] = []
        for number, (partition, value) in enumerate(records):

            def delivered(error: KafkaError | None, message: Any, number: int = number) -> None:
                if error is not None:
                    failures.append(error)
                else:
                    offsets[number] = message.offset()

            self.producer.produce(topic, value.encode(), partition=partition, on_delivery=delivered)
        self.producer.flush(PATIENCE_SECONDS)
        if failures:
            raise KafkaException(failures[0])
        return [offsets[number] for number in range(len(records))]

    def offsets(self, group: str, topic: str, positions: Positions) -> None:
        consumer = self._consumer or self._make_consumer(group)
        self.producer.send_offsets_to_transaction(
            [TopicPartition(topic, *each) for each in positions.items()],
            consumer.consumer_group_metadata(),
            PATIENCE_SECONDS,
        )
        if consumer is not self._consumer:
            consumer.close()

    def commit(self) -> None:
        self.producer.commit_transaction(PATIENCE_SECONDS)

    def abort(self) -> None:
        self.producer.abort_transaction(PATIENCE_SECONDS)

    def read(self, topic: str, partition: int, isolation: str) -> list[tuple[int, str]]:
        consumer = self._make_consumer("unused", isolation)
        found: list[tuple[int, str]] = []
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            message: Any = consumer.poll(PATIENCE_SECONDS)
            assert message is not None, f"no end after {len(found)} records"
            error = message.error()
            if error is None:
                found.append((message.offset(), message.value().decode()))
            elif error.code() == KafkaError._PARTITION_EOF:
                break
            else:
                raise KafkaException(error)
        consumer.close()
        return found

    def consume(self, topic: str, partitions: int, group: str, way: str) -> None:
        self._consumer = self._make_consumer(group)
        if way == "subscribe":
            self._consumer.subscribe([topic])
            return
        asked = [TopicPartition(topic, partition) for partition in range(partitions)]
        committed = self._consumer.committed(asked, PATIENCE_SECONDS)
        for each in committed:
            if each.offset < 0:
                each.offset = OFFSET_BEGINNING
        self._consumer.assign(committed)

    def poll(self, count: int) -> list[tuple[int, int, str]]:
        assert self._consumer is not None
        messages: list[Any] = self._consumer.consume(count, 0.1)
        return [
            (message.partition(), message.offset(), message.value().decode())
            for message in messages
            if message.error() is None
        ]

    def _make_consumer(self, group: str, isolation: str = "read_committed") -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": group,
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
                "session.timeout.ms": 3000,
                "heartbeat.interval.ms": 300,
                "log_level": 0,
            }
        )
