"""kafka-python."""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from compat_tests.transactional.obeying import PATIENCE_SECONDS, Positions

ERRORS = (KafkaError,)


class Client:
    def __init__(self, settings: dict[str, str]) -> None:
        self._bootstrap = settings["bootstrap.servers"]
        self._consumer: KafkaConsumer | None = None
        self._producer: KafkaProducer | None = None
        if "transactional.id" in settings:
            self._producer = KafkaProducer(
                bootstrap_servers=self._bootstrap,
                transactional_id=settings["transactional.id"],
                transaction_timeout_ms=int(settings.get("transaction.timeout.ms", "60000")),
                retry_backoff_ms=20,
            )

    @property
    def producer(self) -> KafkaProducer:
        assert self._producer is not None, "it has no transactional id"
        return self._producer

    def init(self) -> None:
        self.producer.init_transactions()

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, records: list[tuple[int, str]]) -> list[int]:
        futures = [
            self.producer.send(topic, value.encode(), partition=partition) for partition, value in records
        ]
        self.producer.flush(PATIENCE_SECONDS)
        return [future.get(PATIENCE_SECONDS).offset for future in futures]

    def offsets(self, group: str, topic: str, positions: Positions) -> None:
        member = self._consumer.group_metadata() if self._consumer is not None else group
        committed = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in positions.items()
        }
        self.producer.send_offsets_to_transaction(committed, member)

    def commit(self) -> None:
        self.producer.commit_transaction()

    def abort(self) -> None:
        self.producer.abort_transaction()

    def read(self, topic: str, partition: int, isolation: str) -> list[tuple[int, str]]:
        consumer = self._make_consumer(None, isolation)
        place = TopicPartition(topic, partition)
        consumer.assign([place])
        end = consumer.end_offsets([place])[place]
        consumer.seek(place, 0)
        found: list[tuple[int, str]] = []
        while consumer.position(place) < end:
            records = consumer.poll(timeout_ms=100).get(place, [])
            found += [(record.offset, record.value.decode()) for record in records]
        consumer.close()
        return found

    def consume(self, topic: str, partitions: int, group: str, way: str) -> None:
        self._consumer = self._make_consumer(group)
        if way == "subscribe":
            self._consumer.subscribe([topic])
            return
        self._consumer.assign([TopicPartition(topic, partition) for partition in range(partitions)])

    def poll(self, count: int) -> list[tuple[int, int, str]]:
        assert self._consumer is not None
        found = self._consumer.poll(timeout_ms=100, max_records=count)
        return [(r.partition, r.offset, r.value.decode()) for records in found.values() for r in records]

    def _make_consumer(self, group: str | None, isolation: str = "read_committed") -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=group,
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            session_timeout_ms=3000,
            heartbeat_interval_ms=300,
        )
