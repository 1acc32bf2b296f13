"""What all calls of aiokafka use: its settings, and its errors by Kafka's names."""

import logging
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import BrokerResponseError, ProducerFenced, UnknownError

from compat_tests.matrix.drivers.answers import Offsets, each_offset
from compat_tests.matrix.drivers.serving import Refused, Unsupported, error_name

# It tries again for so long, also where nothing will change.
LIBRARY_SECONDS = 10

# It tells in its log what it will do again by itself.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


class Library:
    """The address, and an admin client that is made when it is needed first."""

    def __init__(self, bootstrap: str) -> None:
        self.settings: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "request_timeout_ms": LIBRARY_SECONDS * 1000,
            "retry_backoff_ms": 20,
        }
        self._admin: AIOKafkaAdminClient | None = None

    async def admin(self) -> AIOKafkaAdminClient:
        if self._admin is None:
            self._admin = AIOKafkaAdminClient(**self.settings)
            await self._admin.start()
        return self._admin

    async def close_admin(self) -> None:
        if self._admin is not None:
            await self._admin.close()

    def refusal(self, error: Exception) -> Refused | None:
        if isinstance(error, ProducerFenced):  # it has no code, but stands for this one alone
            return Refused("PRODUCER_FENCED", str(error))
        if isinstance(error, BrokerResponseError):
            name = error_name(error.errno)
            return None if name == "LOCAL" else Refused(name, str(error))
        return None

    def name_of(self, error: Exception) -> str:
        """What Kafka calls it; LOCAL for what only the library knows."""
        if isinstance(error, UnknownError):
            raise Unsupported("aiokafka does not know the broker's error code")
        refused = self.refusal(error)
        return "LOCAL" if refused is None else refused.name


def code_name(code: int) -> str | None:
    """The name of a code in an answer, None for no error."""
    return error_name(code) if code else None


def places(offsets: Offsets) -> dict[TopicPartition, int]:
    """Offsets of a call as the library takes them."""
    return {TopicPartition(topic, partition): offset for topic, partition, offset in each_offset(offsets)}
