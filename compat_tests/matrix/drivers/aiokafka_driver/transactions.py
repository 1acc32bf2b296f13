"""Transactional producers."""

from typing import Any

from aiokafka import AIOKafkaProducer

from compat_tests.matrix.drivers.aiokafka_driver.library import Library, places
from compat_tests.matrix.drivers.answers import Offsets
from compat_tests.matrix.drivers.serving import decoded


class Transactions(Library):
    """Producers by the name that a case gives them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._producers: dict[str, AIOKafkaProducer] = {}

    async def txn_init(self, id: str, timeout_ms: int | None = None, **named: Any) -> None:
        producer = AIOKafkaProducer(
            **self.settings, transactional_id=id, transaction_timeout_ms=timeout_ms or 60_000
        )
        await producer.start()
        self._producers[named["as"]] = producer

    async def txn_begin(self, **named: Any) -> None:
        await self._producers[named["as"]].begin_transaction()

    async def txn_send(self, topic: str, partition: int, values: list[str], **named: Any) -> list[int]:
        producer = self._producers[named["as"]]
        sent = [await producer.send(topic, decoded(value), partition=partition) for value in values]
        return [(await future).offset for future in sent]

    async def txn_offsets(
        self, group: str, offsets: Offsets, member: str | None = None, **named: Any
    ) -> None:
        await self._producers[named["as"]].send_offsets_to_transaction(places(offsets), group)

    async def txn_commit(self, **named: Any) -> None:
        await self._producers[named["as"]].commit_transaction()

    async def txn_abort(self, **named: Any) -> None:
        await self._producers[named["as"]].abort_transaction()

    async def txn_close(self, **named: Any) -> None:
        await self._producers.pop(named["as"]).stop()

    async def close_producers(self) -> None:
        for name in list(self._producers):
            await self.txn_close(**{"as": name})
