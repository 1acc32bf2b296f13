"""Transactional producers."""

from typing import Any

from kafka import KafkaProducer
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

from compat_tests.matrix.drivers.answers import Offsets
from compat_tests.matrix.drivers.kafka_python_driver.groups import Members
from compat_tests.matrix.drivers.kafka_python_driver.library import places
from compat_tests.matrix.drivers.serving import PATIENCE_MS, PATIENCE_SECONDS, decoded


class Transactions(Members):
    """Producers by the name that a case gives them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._producers: dict[str, KafkaProducer] = {}

    def txn_init(self, id: str, timeout_ms: int, **named: Any) -> None:
        producer = KafkaProducer(
            transactional_id=id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=PATIENCE_MS,
            delivery_timeout_ms=PATIENCE_MS + 1000,
            **self.settings,
        )
        self._producers[named["as"]] = producer
        producer.init_transactions()

    def txn_begin(self, **named: Any) -> None:
        self._producers[named["as"]].begin_transaction()

    def txn_send(self, topic: str, partition: int, values: list[str], **named: Any) -> list[int]:
        producer = self._producers[named["as"]]
        futures = [producer.send(topic, decoded(value), partition=partition) for value in values]
        producer.flush(PATIENCE_SECONDS)
        return [future.get(PATIENCE_SECONDS).offset for future in futures]

    def txn_offsets(self, group: str, offsets: Offsets, member: str | None = None, **named: Any) -> None:
        metadata = ConsumerGroupMetadata(group) if member is None else self.members[member].metadata()
        wanted = {place: OffsetAndMetadata(offset, "", -1) for place, offset in places(offsets).items()}
        self._producers[named["as"]].send_offsets_to_transaction(wanted, metadata)

    def txn_commit(self, **named: Any) -> None:
        self._producers[named["as"]].commit_transaction()

    def txn_abort(self, **named: Any) -> None:
        self._producers[named["as"]].abort_transaction()

    def txn_close(self, **named: Any) -> None:
        self._producers.pop(named["as"]).close(timeout=1)

    def close_producers(self) -> None:
        for producer in self._producers.values():
            producer.close(timeout=1)
