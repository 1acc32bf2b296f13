"""What all calls of kafka-python use: its settings, and its errors by Kafka's names."""

from __future__ import annotations

import re
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition, errors

from compat_tests.matrix.drivers.answers import Offsets, each_offset
from compat_tests.matrix.drivers.serving import PATIENCE_MS, Refused, error_name


class Library:
    """The address, and an admin client that is made when it is needed first."""

    def __init__(self, bootstrap: str) -> None:
        self.settings: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "request_timeout_ms": PATIENCE_MS,
            "retry_backoff_ms": 20,
        }
        self._admin: KafkaAdminClient | None = None

    @property
    def admin(self) -> KafkaAdminClient:
        if self._admin is None:
            self._admin = KafkaAdminClient(**self.settings)
        return self._admin

    def close_admin(self) -> None:
        if self._admin is not None:
            self._admin.close()

    def consumer(self, group: str | None = None, **settings: Any) -> KafkaConsumer:
        """A consumer that commits nothing by itself."""
        session_ms = settings.pop("session_timeout_ms", 10_000)
        return KafkaConsumer(
            group_id=group,
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=200,
            **self.settings,
            **settings,
        )

    def refusal(self, error: Exception) -> Refused | None:
        name = name_of(error)
        return None if name == "LOCAL" else Refused(name, str(error))


def name_of(error: Any) -> str:
    """What Kafka calls an error or a class of errors; LOCAL for what only kafka-python knows."""
    code = getattr(error, "errno", None)
    # Its errors of a size too large for itself have the broker's class.
    return error_name(code) if isinstance(code, int) else "LOCAL"


def name_or_none(error: Any) -> str | None:
    """The same for what may be no error: a code, a class, or the words that it makes of either."""
    if isinstance(error, str):
        found = re.match(r"\[Error (-?\d+)\]", error)
        error = getattr(errors, error, None) if found is None else int(found[1])
    name = error_name(error) if isinstance(error, int) else name_of(error)
    return None if name == "NONE" else name


def places(offsets: Offsets) -> dict[TopicPartition, int]:
    """Offsets of a call as the library takes them."""
    return {TopicPartition(topic, partition): offset for topic, partition, offset in each_offset(offsets)}
