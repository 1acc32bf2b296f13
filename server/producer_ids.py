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
        self._block = iter(range(0))
        self._refilling = trio.Lock()

    async def next(self) -> int:
        """An id that nobody has been given."""
        async with self._refilling:
            producer_id = next(self._block, None)
            while producer_id is None:
                block = await self._broker.decide(self._plan_block)
                self._block = iter(range(block.first_producer_id, block.last_producer_id + 1))
                producer_id = next(self._block, None)
            return producer_id

    def _plan_block(self, image: MetadataImage) -> Plan[ProducerIdBlock]:
        return plan_producer_id_block(image, node_id=self._broker.node_id)
