"""AllocateProducerIds: producer ids are given to brokers in blocks of 1,000 and never given again."""

from ottla.metadata.controller.plan import Plan
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import ProducerIdsRecord
from ottla.wire.dataclass import dataclass
from ottla.wire.errors import ErrorCode, KafkaError

PRODUCER_ID_BLOCK_SIZE = 1000
_MAX_PRODUCER_ID = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """Producer ids from `first_producer_id` on, `length` of them."""

    first_producer_id: int
    length: int

    @property
    def last_producer_id(self) -> int:
        return self.first_producer_id + self.length - 1


def plan_producer_id_block(image: MetadataImage, *, node_id: int) -> Plan[ProducerIdBlock]:
    """The next block for this broker."""
    first = max(0, image.next_producer_id)
    if first > _MAX_PRODUCER_ID - PRODUCER_ID_BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been given out.")
    registration = image.brokers.get(node_id)
    record = ProducerIdsRecord(
        broker_id=node_id,
        broker_epoch=-1 if registration is None else registration.broker_epoch,
        next_producer_id=first + PRODUCER_ID_BLOCK_SIZE,
    )
    return Plan([record], ProducerIdBlock(first, PRODUCER_ID_BLOCK_SIZE))
