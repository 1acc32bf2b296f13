"""Producer ids: handed out one by one from blocks that the controller records, so that no id is given twice.

A block that was begun before a restart is left unfinished, as in Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ottla.metadata.controller.plan import Plan
from ottla.metadata.controller.producer_ids import ProducerIdBlock, plan_producer_id_block
from ottla.metadata.image import MetadataImage

if TYPE_CHECKING:
    from ottla.server.broker import Broker


class ProducerIds:
    """The current block of ids."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._next = 0
        self._end = 0
        self._refilling = trio.Lock()

    async def next(self) -> int:
        """An id that nobody has been given."""
        while True:
            producer_id = self.take()
            if producer_id is not None:
                return producer_id
            await self.stock_up()

    def take(self) -> int | None:
        """An id that nobody has been given, if there is one in stock."""
        if self._next == self._end:
            return None
        self._next += 1
        return self._next - 1

    @property
    def has_stock(self) -> bool:
        """Whether `stock_up` need not wait."""
        return self._next != self._end

    async def stock_up(self) -> None:
        """Have an id in stock. Without a wait when there is, so that whoever comes next can take it."""
        while self._next == self._end:
            async with self._refilling:
                if self._next == self._end:
                    block = await self._broker.decide(self._plan_block)
                    self._next, self._end = block.first_producer_id, block.last_producer_id + 1

    def _plan_block(self, image: MetadataImage) -> Plan[ProducerIdBlock]:
        return plan_producer_id_block(image, node_id=self._broker.node_id)
