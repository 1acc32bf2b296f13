"""Transactional producers."""

from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from compat_tests.matrix.drivers.answers import Offsets
from compat_tests.matrix.drivers.confluent_kafka_driver.groups import Groups
from compat_tests.matrix.drivers.confluent_kafka_driver.library import places
from compat_tests.matrix.drivers.confluent_kafka_driver.records import Records
from compat_tests.matrix.drivers.serving import PATIENCE_SECONDS, Refused, decoded


class Transactions(Groups, Records):
    """Producers by the name that a case gives them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._producers: dict[str, Producer] = {}

    def txn_init(self, id: str, timeout_ms: int, **named: Any) -> None:
        # It does not allow anything to take longer than the transaction may.
        patience_ms = min(timeout_ms, int(PATIENCE_SECONDS * 1000))
        limits = {
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": patience_ms,
            "socket.timeout.ms": patience_ms,
        }
        producer = self.producer({"transactional.id": id, **limits})
        producer.init_transactions(PATIENCE_SECONDS)
        self._producers[named["as"]] = producer

    def txn_begin(self, **named: Any) -> None:
        self._producers[named["as"]].begin_transaction()

    def txn_send(self, topic: str, partition: int, values: list[str], **named: Any) -> list[int]:
        producer = self._producers[named["as"]]
        found: list[KafkaError | int] = [-1] * len(values)
        for number, value in enumerate(values):

            def delivered(error: KafkaError | None, stored: Any, number: int = number) -> None:
                found[number] = stored.offset() if error is None else error

            producer.produce(topic, value=decoded(value), partition=partition, on_delivery=delivered)
        producer.flush(PATIENCE_SECONDS)
        for each in found:
            if isinstance(each, KafkaError):
                raise KafkaException(each)
        return [each for each in found if isinstance(each, int)]

    def txn_offsets(self, group: str, offsets: Offsets, member: str | None = None, **named: Any) -> None:
        consumer = self.consumer(group) if member is None else self.members[member]
        try:
            metadata = consumer.consumer_group_metadata()
            producer = self._producers[named["as"]]
            producer.send_offsets_to_transaction(places(offsets), metadata, PATIENCE_SECONDS)
        finally:
            if member is None:
                consumer.close()

    def txn_commit(self, **named: Any) -> None:
        self._producers[named["as"]].commit_transaction(PATIENCE_SECONDS)

    def txn_abort(self, **named: Any) -> None:
        self._producers[named["as"]].abort_transaction(PATIENCE_SECONDS)

    def txn_close(self, **named: Any) -> None:
        self._producers.pop(named["as"])

    def close_producers(self) -> None:
        self._producers.clear()

    def refusal(self, error: Exception) -> Refused | None:
        known = error.args[0] if isinstance(error, KafkaException) else None
        if isinstance(known, KafkaError) and known.code() == KafkaError._FENCED:
            return Refused("PRODUCER_FENCED", known.str())
        return super().refusal(error)
