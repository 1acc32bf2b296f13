"""Producer ids: handed out one by one from blocks that the controller records, so that no id is given twice.

A block that was begun before a restart is left unfinished, as in Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ottla.metadata.controller.plan import Plan
from ottla.metadata.controller.producer_ids import plan_producer_id_block
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
                self._block = iter(await self._broker.decide(self._plan_block))
                producer_id = next(self._block, None)
            return producer_id

    def _plan_block(self, image: MetadataImage) -> Plan[range]:
        return plan_producer_id_block(image, self._broker.node_id, self._broker.broker_epoch)
