"""What all calls of confluent-kafka use: its settings, and its errors by Kafka's names."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.matrix.drivers.answers import Offsets, each_offset
from compat_tests.matrix.drivers.serving import PATIENCE_SECONDS, Refused, error_name

# Codes of librdkafka's own that stand for exactly one answer of the broker.
STANDS_FOR = {KafkaError._AUTO_OFFSET_RESET: "OFFSET_OUT_OF_RANGE"}


class Library:
    """The address, and an admin client that is made when it is needed first."""

    def __init__(self, bootstrap: str) -> None:
        self.settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "socket.timeout.ms": int(PATIENCE_SECONDS * 1000),
            # What it does not know it asks for again soon.
            "topic.metadata.refresh.fast.interval.ms": 20,
            "topic.metadata.refresh.interval.ms": 2000,
            # For how long it hopes for a topic that is not there.
            "topic.metadata.propagation.max.ms": 3_000,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 100,
        }
        self._admin: AdminClient | None = None

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(self.settings)
        return self._admin

    def consumer(self, group: str = "unused", **settings: Any) -> Consumer:
        """A consumer that commits nothing by itself; `fetch_wait_max_ms=50` is `fetch.wait.max.ms`."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return Consumer({**self.settings, "group.id": group, "enable.auto.commit": False, **named})

    def refusal(self, error: Exception) -> Refused | None:
        known = error.args[0] if isinstance(error, KafkaException) else None
        if not isinstance(known, KafkaError):
            return None
        name = name_of(known)
        return None if name == "LOCAL" else Refused(name, known.str())


def name_of(error: KafkaError | KafkaException) -> str:
    """What Kafka calls it; LOCAL for what only librdkafka knows."""
    known = error.args[0] if isinstance(error, KafkaException) else error
    return STANDS_FOR.get(known.code(), error_name(known.code()))


def outcome(future: Any) -> Any:
    """What a future of the admin client brings."""
    return future.result(PATIENCE_SECONDS)


def error_of(future: Any) -> str | None:
    """The name of the error that a future brings, None for none."""
    try:
        outcome(future)
    except KafkaException as error:
        return name_of(error)
    return None


def places(offsets: Offsets) -> list[TopicPartition]:
    """Offsets of a call as the library takes them."""
    return [TopicPartition(*place) for place in each_offset(offsets)]
